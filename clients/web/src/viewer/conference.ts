// A conference from the view of this client: participants, publications, and messages. It connects
// the session, the peer connection and the received media, and has no display.

import type { LineStatistics, UplinkStatistics, Workers } from "../media/connection";
import { Link } from "../media/link";
import { isPicture } from "../media/picture";
import type { Encryption } from "../sframe/encryption";
import type { Slot } from "../media/slots";
import type { Source } from "../media/source";
import type { DecodedFrame, WorkerReport } from "../media/traffic";
import { DataMessages } from "../signal/data";
import type { Choice, Data, Participant, Pose, Publication, ServerMessage, TileRef, Viewpoint } from "../signal/messages";
import { type Joined, Session, type SessionOptions, type SessionState } from "../signal/session";
import { nowMicroseconds } from "../signal/clock";
import { Choices } from "./choices";
import { FrameLayers } from "./layers";
import type { Meters } from "./meters";
import { type GivenUp, type Outgoing, OwnPublications } from "./own";
import type { PictureLines } from "./pictures";
import { Reception, type ReceptionEvents } from "./reception";
import { Roster, type RosterEvents } from "./roster";
import { Secrecy, sentenceOf } from "./secrecy";

export interface ConferenceEvents extends RosterEvents, ReceptionEvents {
  posed(pose: Pose): void;
  state(state: SessionState, why: string): void;
  /** The session continues on another server. */
  moved(): void;
  trouble(message: string): void;
  data(message: Data): void;
}

/** The interval in milliseconds in which the end of a move is checked. */
const moveInterval = 100;

export class Conference {
  private mover: ReturnType<typeof setInterval> | undefined;
  private readonly reception: Reception;
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
  private readonly own: OwnPublications;
  /** The media that this page publishes on lines, by the publication's name. */
  private readonly sources = new Map<string, Source>();
  private readonly troubles = new Set<string>();
  private readonly roster: Roster;
  private viewpoint: Viewpoint | undefined;
  /** The muting of publications of this page, for those that were muted once. */
  private readonly mutedByPage = new Map<string, boolean>();

  constructor(
    private readonly options: SessionOptions,
    workers: Workers,
    private readonly events: ConferenceEvents,
    decode = true,
    /** Undefined if the page has no key. */
    readonly encryption?: Encryption,
  ) {
    this.secrecy = new Secrecy(encryption, (choice) => this.choose(choice), (sentence) => this.trouble(sentence));
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
        this.reception.unpublished(participant, publication);
        events.unpublished(participant, publication);
      },
    });
    this.own = new OwnPublications((message) => this.session.send(message));
    this.session = new Session(options, {
      joined: (message, renewed) => this.joined(message, renewed),
      moved: (message, limit) => this.moved(message, limit),
      former: (message) => this.takeFormer(message),
      message: (message) => this.take(message),
      state: (state, why) => {
        if (state === "closed") {
          clearInterval(this.mover);
          this.data.end();
          this.link.close();
        }
        events.state(state, why);
      },
      connected: () => this.link.live,
      received: () => this.data.received,
      mediaReceived: () => this.reception.lastFrame,
    });
    this.data = new DataMessages((message) => this.session.send(message), () => this.link.messages, (message) => events.data(message));
    this.link = new Link(workers, decode, this.sources, {
      send: (message) => this.session.send(message),
      sendFormer: (message) => this.session.sendFormer(message),
      audio: (line, track) => this.reception.listen(line, track),
      video: (line, track) => this.reception.pictures.line(line, track),
      trouble: (message) => this.trouble(message),
      copied: (json) => this.data.copied(json),
      connected: () => this.checkMove(),
      lost: () => this.session.reconnect(),
    }, encryption);
    this.reception = new Reception(this.link, this.secrecy, this.session.clock, (of) => this.publication(of), {
      frame: (track, frame) => {
        this.layers.decoded(track, frame, this.session.clock);
        events.frame(track, frame);
      },
      picture: (of, track) => events.picture(of, track),
      cleared: (track) => events.cleared(track),
      audio: (line, track) => events.audio(line, track),
      silenced: (lines) => events.silenced(lines),
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
    this.mutedByPage.delete(publication);
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
      const track = this.slot(report.mid)?.track;
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
    this.reception.decoded(report);
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
        this.reception.published(message.participant, message.publication.name);
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
        this.assigned(message.assignments, false);
        break;
      case "sending":
        this.reception.sending(message.slots, false);
        break;
      case "delivery":
        this.reception.delivery(message.dropped, false);
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

  /** Handles a message of the former server: only its media and replies count. */
  private takeFormer(message: ServerMessage): void {
    switch (message.type) {
      case "offer":
        this.link.offered(message, true);
        break;
      case "candidate":
        this.link.candidate(message, true);
        break;
      case "assignments":
        this.assigned(message.assignments, true);
        break;
      case "sending":
        this.reception.sending(message.slots, true);
        break;
      case "delivery":
        this.reception.delivery(message.dropped, true);
        break;
      case "wanted":
      case "ok":
      case "error":
        if (!this.own.handle(message, true)) {
          this.data.handle(message);
        }
        break;
      default:
        break;
    }
  }

  /** Tells the others that a publication of this page is muted. */
  mute(publication: string, muted: boolean): void {
    if (muted || this.mutedByPage.has(publication)) {
      this.mutedByPage.set(publication, muted);
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
    this.identify(message);
    if (renewed) {
      this.endMove();
      this.reception.renew();
      this.link.renew(this.serversOf(message));
    }
    this.data.interrupted();
    this.data.entered(message.resumed ?? false, message.data_received ?? 0);
    this.own.entered(renewed, (message.resumed ?? false) && (message.restored ?? true));
    this.restore(message, false);
  }

  /** Continues on another server, and keeps the connection to the former one for a while. */
  private moved(message: Joined, limit: number): void {
    this.endMove();
    this.identify(message);
    this.link.move(this.serversOf(message));
    this.reception.begin(Date.now() + limit);
    this.mover = setInterval(() => this.checkMove(), moveInterval);
    this.data.entered(message.resumed ?? false, message.data_received ?? 0);
    this.own.moved((message.resumed ?? false) && (message.restored ?? true));
    this.restore(message, true);
  }

  private identify(message: Joined): void {
    this.room = message.room;
    this.identity = message.identity;
    // A message follows if there is an audience.
    this.audience = 0;
    this.encryption?.enter(message.room, message.identity);
  }

  private serversOf({ ice_servers }: Joined): RTCIceServer[] {
    return [...ice_servers, ...(this.options.iceServers ?? [])];
  }

  /**
   * Sends state again that may have changed since the server has heard of this page.
   * @param moved includes what the former server may not have told the present one
   */
  private restore({ participants, recorded = false, restored = true }: Joined, moved: boolean): void {
    this.roster.present(participants);
    this.warnOfRecording(recorded);
    // The server accepts or rejects a message's choices as a whole, so each publication has its own
    // message.
    for (const choices of this.choices) {
      this.session.send({ type: "set_quality", choices });
    }
    if (this.viewpoint) {
      this.look(this.viewpoint);
    }
    if (this.layers.following) {
      this.session.send({ type: "trace", frame_times: true });
    }
    for (const [publication, muted] of this.mutedByPage) {
      if (moved || (!restored && muted)) {
        this.session.send({ type: "mute", publication, muted });
      }
    }
  }

  /** Ends the move when the new connection carries everything, and resumes if it is not established. */
  private checkMove(): void {
    const now = Date.now();
    const verdict = this.reception.step(now, { connected: this.link.live, sending: this.own.moves(now) || this.link.needsFormer });
    if (verdict === "leave") {
      this.endMove();
      this.events.moved();
    } else if (verdict === "fail") {
      // The reply to the next join ends the move.
      this.session.reconnect();
    }
  }

  /** Ends the connection to the former server, if there is one. */
  private endMove(): void {
    if (!this.reception.moving) {
      return;
    }
    clearInterval(this.mover);
    this.own.left();
    this.reception.end();
    this.link.retire();
    this.session.retire();
  }

  private assigned(assignments: Extract<ServerMessage, { type: "assignments" }>["assignments"], former: boolean): void {
    const slots = this.reception.assigned(assignments, former);
    if (slots.length === 0) {
      return;
    }
    const message = { type: "acknowledge", slots } as const;
    if (former) {
      this.session.sendFormer(message);
    } else {
      this.session.send(message);
    }
  }

  get meters(): Meters {
    return this.reception.meters;
  }

  get pictures(): PictureLines {
    return this.reception.pictures;
  }

  /** Returns the slot of a line. */
  slot(line: string): Slot | undefined {
    return this.reception.slot(line);
  }

  /** Yields the slots in use. During a move, those of the former connection come first. */
  lines(): Iterable<Slot> {
    return this.reception.lines();
  }

  /** Yields the slots that carry video at present. */
  tiles(): Iterable<Slot & { track: TileRef }> {
    return this.reception.tiles();
  }
}
