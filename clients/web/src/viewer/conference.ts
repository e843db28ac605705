// A conference from the view of this client: participants, publications, and received data. It
// connects the session, the peer connection and the slots, and has no display.

import type { LineStatistics, UplinkStatistics, Workers } from "../media/connection";
import { Link } from "../media/link";
import { isPicture } from "../media/picture";
import type { Encryption } from "../sframe/encryption";
import { type Slot, SlotTable } from "../media/slots";
import type { Source } from "../media/source";
import type { DecodedFrame, WorkerReport } from "../media/traffic";
import { DataMessages } from "../signal/data";
import type { Choice, Data, Participant, Pose, Publication, ServerMessage, TileRef, Viewpoint } from "../signal/messages";
import { type Joined, Session, type SessionOptions, type SessionState } from "../signal/session";
import { nowMicroseconds } from "../signal/clock";
import { Choices } from "./choices";
import { FrameLayers } from "./layers";
import { Meters } from "./meters";
import { type GivenUp, type Outgoing, OwnPublications } from "./own";
import { PictureLines } from "./pictures";
import { Roster, type RosterEvents } from "./roster";
import { Secrecy, sentenceOf } from "./secrecy";

export interface ConferenceEvents extends RosterEvents {
  /** A tile has a new picture. The frame must be returned with recycle after it was copied. */
  frame(track: TileRef, frame: DecodedFrame): void;
  /** A webcam or a screen is received on this track; undefined when it is no longer received. */
  picture(of: TileRef, track: MediaStreamTrack | undefined): void;
  /** A tile is no longer shown. */
  cleared(track: TileRef): void;
  posed(pose: Pose): void;
  audio(mid: string, track: MediaStreamTrack): void;
  state(state: SessionState, why: string): void;
  trouble(message: string): void;
  data(message: Data): void;
}

export class Conference {
  readonly slots = new SlotTable();
  readonly meters = new Meters();
  readonly layers = new FrameLayers();
  readonly choices = new Choices();
  readonly session: Session;
  readonly data: DataMessages;
  room = "";
  identity = "";
  /** The number of participants that are in the room and not announced. */
  audience = 0;
  bandwidth = { estimate_bps: 0, allocated_bps: 0, wanted_bps: 0 };
  readonly secrecy: Secrecy;
  private readonly link: Link;
  readonly pictures: PictureLines;
  private readonly own: OwnPublications;
  /** The media that this page publishes on lines, by the publication's name. */
  private readonly sources = new Map<string, Source>();
  private readonly troubles = new Set<string>();
  private readonly roster: Roster;
  private viewpoint: Viewpoint | undefined;
  /** The muted publications of this page. */
  private readonly mutedByPage = new Set<string>();
  /** The time when a frame has arrived last, by Date.now. */
  private mediaReceived = 0;

  constructor(
    private readonly options: SessionOptions,
    workers: Workers,
    private readonly events: ConferenceEvents,
    decode = true,
    /** Undefined if the page has no key. */
    readonly encryption?: Encryption,
  ) {
    this.secrecy = new Secrecy(encryption, (choice) => this.choose(choice), (sentence) => this.trouble(sentence));
    this.pictures = new PictureLines((of, track) => events.picture(of, track));
    this.roster = new Roster({
      ...events,
      published: (participant, publication) => {
        if (participant !== this.identity) {
          this.secrecy.published(participant, publication);
          this.warnOfChannels(publication);
        }
        events.published(participant, publication);
      },
      unpublished: (participant, publication) => {
        this.secrecy.unpublished(participant, publication);
        this.pictures.forget(participant, publication);
        events.unpublished(participant, publication);
      },
    });
    this.own = new OwnPublications((message) => this.session.send(message));
    this.session = new Session(options, {
      joined: (message, renewed) => this.joined(message, renewed),
      message: (message) => this.take(message),
      state: (state, why) => {
        if (state === "closed") {
          this.link.close();
        }
        events.state(state, why);
      },
      connected: () => this.link.live,
      received: () => this.data.received,
      mediaReceived: () => this.mediaReceived,
    });
    this.data = new DataMessages((message) => this.session.send(message), () => this.link.messages, (message) => events.data(message));
    this.link = new Link(workers, decode, this.sources, {
      send: (message) => this.session.send(message),
      audio: (mid, track) => {
        this.secrecy.listen(mid, track);
        events.audio(mid, track);
      },
      video: (mid, track) => this.pictures.line(mid, track),
      trouble: (message) => this.trouble(message),
      copied: (json) => this.data.copied(json),
      lost: () => this.session.reconnect(),
    }, encryption);
  }

  get participants(): ReadonlyMap<string, Participant> {
    return this.roster.participants;
  }

  /** Returns the name to show for a participant. */
  name(identity: string): string {
    return this.roster.name(identity);
  }

  /** Reports whether sound of a participant is muted. */
  silent(identity: string): boolean {
    return this.roster.silent(identity);
  }

  start(): void {
    this.session.start();
  }

  /** Leaves the room, with a reason: by default that the user left. */
  leave(why?: string): void {
    this.session.leave(why);
  }

  /** Starts a publication. */
  publish(outgoing: Outgoing): void {
    this.own.add(outgoing, this.link.begun);
  }

  unpublish(outgoing: Outgoing): void {
    this.own.delete(outgoing);
  }

  /**
   * Ends a publication of this page. If the websocket breaks before the server's reply, the request
   * is sent again.
   */
  retract(publication: string): void {
    this.own.retract(publication);
  }

  /** Tells the server which tracks of a publication the uplink cannot carry. */
  giveUp(publication: string, givenUp: GivenUp): void {
    this.own.giveUp(publication, givenUp);
  }

  /** Opens a channel for the frames of a publication of this page. */
  channel(publication: string): RTCDataChannel | undefined {
    return this.link.publish(publication);
  }

  /**
   * Sets the media of a publication on lines. They must be set before the announcement, and removed
   * after the end.
   */
  feed(publication: string, source: Source | undefined): void {
    if (source) {
      this.sources.set(publication, source);
    } else {
      this.sources.delete(publication);
    }
  }

  /** Returns the state of the uplink; undefined without a connection. */
  uplink(): Promise<UplinkStatistics | undefined> {
    return this.link.uplink();
  }

  /** Sends the position of the eye. */
  look(viewpoint: Viewpoint): void {
    this.viewpoint = viewpoint;
    this.session.send({ type: "viewpoint", at_us: nowMicroseconds() + Math.round(this.session.clock.ahead * 1000), ...viewpoint });
  }

  /** Chooses a quality for a tile, or for a whole publication if the choice has no tile. */
  choose(choice: Choice): void {
    this.choices.set(choice);
    this.session.send({ type: "set_quality", choices: [choice] });
  }

  /** Starts or stops the collection of frame times. */
  follow(on: boolean): void {
    this.layers.follow(on);
    this.session.send({ type: "trace", frame_times: on });
  }

  /** Records that a frame was drawn. */
  shown(track: TileRef, frame: DecodedFrame, at: number): void {
    this.meters.shown(frame.mid, at - frame.decoded);
    this.layers.shown(track, frame, at);
  }

  recycle(frame: DecodedFrame): void {
    this.link.recycle(frame);
  }

  publication(ref: { participant: string; publication: string }): Publication | undefined {
    return this.roster.publication(ref);
  }

  statistics(): Promise<Map<string, LineStatistics>> {
    return this.link.statistics();
  }

  /** Handles a report of a worker. */
  report(report: WorkerReport): void {
    if (report.type === "failure") {
      this.meters.failed(report.mid);
      const track = this.slots.get(report.mid)?.track;
      if (track && this.secrecy.refuses(track)) {
        return;
      }
      this.trouble(track ? `${track.participant} / ${track.publication} cannot be shown. ${report.message}` : report.message);
      return;
    }
    if (report.type === "opened") {
      this.meters.opened++;
      return;
    }
    this.mediaReceived = Date.now();
    const slot = this.slots.get(report.mid);
    if (!slot?.track || report.received < slot.since) {
      this.recycle(report);
      return;
    }
    this.meters.decoded(slot, report, this.session.clock.ahead);
    this.layers.decoded(slot.track, report, this.session.clock);
    this.events.frame(slot.track, report);
  }

  /** Warns of participants whose frames are rejected. */
  warnOfRejected(): void {
    for (const [who, state] of this.secrecy.states()) {
      if (state !== "opened") {
        this.trouble(sentenceOf(who, state));
      }
    }
  }

  /** Tells the user that the server records the room. */
  private warnOfRecording(active: boolean): void {
    if (active) {
      this.trouble("The server records this room.");
    }
  }

  /** Tells the user that webcams and screens do not arrive over data channels. */
  private warnOfChannels(publication: Publication): void {
    if (this.options.receiveData && isPicture(publication)) {
      this.trouble("Webcams and screens are not shown: this page receives over data channels, which do not carry them. Recent versions of Chrome, Edge, Firefox and Safari show them, without delivery=data in the address.");
    }
  }

  /** Shows each problem once. */
  private trouble(message: string): void {
    if (!this.troubles.has(message)) {
      this.troubles.add(message);
      this.events.trouble(message);
    }
  }

  private take(message: Exclude<ServerMessage, Joined>): void {
    if (this.own.handle(message) || this.data.handle(message)) {
      return;
    }
    switch (message.type) {
      case "participant_joined":
        this.roster.arrived(message.participant);
        break;
      case "participant_left":
        this.roster.left(message.identity);
        break;
      case "published":
        this.roster.publishes(message.participant, message.publication);
        break;
      case "unpublished":
        this.roster.unpublishes(message.participant, message.publication);
        break;
      case "recording":
        this.warnOfRecording(message.active);
        break;
      case "audience":
        this.audience = message.count;
        this.events.people();
        break;
      case "attributes":
        this.roster.describes(message.participant, message.attributes);
        break;
      case "muted":
        this.muted(message);
        break;
      case "offer":
        this.link.offered(message);
        break;
      case "candidate":
        this.link.candidate(message);
        break;
      case "assignments":
        this.assigned(message.assignments);
        break;
      case "sending":
        this.slots.sending(message.slots);
        this.clearOff(message.slots.map((s) => s.mid));
        break;
      case "delivery":
        this.slots.delivery(message.dropped);
        break;
      case "pose":
        this.events.posed(message);
        break;
      case "bandwidth":
        this.bandwidth = message;
        break;
      case "frame_times":
        this.layers.addStamps(message, performance.timeOrigin + performance.now());
        break;
      case "error":
        this.trouble(message.message);
        break;
      case "closing":
        this.trouble(message.message);
        break;
      default:
        // These are ok, time_reply, and additions of later protocol versions.
        break;
    }
  }

  /** Tells the others that a publication of this page is muted. */
  mute(publication: string, muted: boolean): void {
    if (muted) {
      this.mutedByPage.add(publication);
    } else {
      this.mutedByPage.delete(publication);
    }
    this.session.send({ type: "mute", publication, muted });
  }

  private muted({ participant, publication, own, operator }: Extract<ServerMessage, { type: "muted" }>): void {
    const state = { publication, own: own ?? false, operator: operator ?? false };
    if (participant !== this.identity) {
      this.roster.mutes(participant, state);
    } else if (state.operator) {
      this.events.trouble(`An operator has muted your ${publication}.`);
    }
  }

  private joined(message: Joined, renewed: boolean): void {
    this.room = message.room;
    this.identity = message.identity;
    // A message follows if there is an audience.
    this.audience = 0;
    this.encryption?.enter(message.room, message.identity);
    if (renewed) {
      // A new connection has new lines and generations.
      for (const { mid } of this.slots) {
        this.carry(mid);
      }
      this.slots.clear();
      this.pictures.clear();
      this.link.renew([...message.ice_servers, ...(this.options.iceServers ?? [])]);
    }
    this.data.entered(message.resumed ?? false, message.data_received ?? 0);
    this.own.entered(renewed, (message.resumed ?? false) && (message.restored ?? true));
    this.roster.present(message.participants);
    this.warnOfRecording(message.recorded ?? false);
    // State that changed while the websocket was broken is sent again. The server accepts or
    // rejects a message's choices as a whole, so each publication has its own message.
    for (const choices of this.choices) {
      this.session.send({ type: "set_quality", choices });
    }
    if (this.viewpoint) {
      this.look(this.viewpoint);
    }
    if (this.layers.following) {
      this.session.send({ type: "trace", frame_times: true });
    }
    if (message.restored === false) {
      for (const publication of this.mutedByPage) {
        this.session.send({ type: "mute", publication, muted: true });
      }
    }
  }

  private assigned(assignments: Extract<ServerMessage, { type: "assignments" }>["assignments"]): void {
    for (const { mid } of assignments) {
      this.meters.forget(mid);
    }
    const slots = this.slots.assign(assignments, performance.timeOrigin + performance.now());
    for (const { mid } of assignments) {
      this.carry(mid, this.slots.get(mid)?.track);
    }
    if (slots.length > 0) {
      this.session.send({ type: "acknowledge", slots });
    }
  }

  /** Prepares a line for the frames of a track, before the assignment is acknowledged. */
  private carry(mid: string, track?: TileRef): void {
    this.link.assigned(mid);
    this.encryption?.assign(mid, track && { ...track, encryption: this.publication(track)?.encryption });
    const refused = track !== undefined && this.secrecy.refuses(track);
    this.secrecy.mute(mid, refused);
    const publication = track && this.publication(track);
    this.pictures.carry(mid, publication && isPicture(publication) && !refused ? track : undefined);
  }

  private clearOff(mids: string[]): void {
    for (const mid of mids) {
      const slot = this.slots.get(mid);
      if (slot?.track && slot.quality === -1) {
        this.events.cleared(slot.track);
      }
    }
  }

  /** Yields the slots that carry video at present. */
  *tiles(): Generator<Slot & { track: TileRef }> {
    for (const slot of this.slots) {
      if (slot.track && this.publication(slot.track)?.kind === "video") {
        yield slot as Slot & { track: TileRef };
      }
    }
  }
}
