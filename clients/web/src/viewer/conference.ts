// A conference as this client knows it: who is there, what they publish, what arrives of it. It ties the session, the connection and the slots together, and
// shows nothing itself.

import { Connection, type Workers } from "../media/connection";
import { type Slot, SlotTable } from "../media/slots";
import type { DecodedFrame, WorkerReport } from "../media/traffic";
import type { Choice, Participant, Pose, Publication, ServerMessage, TileRef, Viewpoint } from "../signal/messages";
import { Session, type SessionOptions, type SessionState } from "../signal/session";
import { nowMicroseconds } from "../signal/clock";
import { Meters } from "./meters";

export interface ConferenceEvents {
  /** A tile has a new picture. Its points are to be given back by recycle once they are copied. */
  frame(track: TileRef, frame: DecodedFrame): void;
  /** A tile shows nothing any more. */
  cleared(track: TileRef): void;
  published(participant: string, publication: Publication): void;
  unpublished(participant: string, publication: string): void;
  posed(pose: Pose): void;
  audio(mid: string, track: MediaStreamTrack): void;
  people(): void;
  state(state: SessionState, why: string): void;
  trouble(message: string): void;
}

/** What this page publishes: it hears of the session beside what is received. */
export interface Outgoing {
  /** The session was entered: with a connection that is new or the one before, with what was published before or without. */
  entered(renewed: boolean, resumed: boolean): void;
  /** Hears what the server says, and tells whether that was meant for it. */
  heard(message: ServerMessage): boolean;
}

/** How long a peer connection that failed is given to come back before the session is resumed with a new one. */
const reconnectAfter = 4000;

export class Conference {
  readonly participants = new Map<string, Participant>();
  readonly slots = new SlotTable();
  readonly meters = new Meters();
  readonly session: Session;
  room = "";
  identity = "";
  bandwidth = { estimate_bps: 0, allocated_bps: 0, wanted_bps: 0 };
  private connection: Connection | undefined;
  private readonly outgoing = new Set<Outgoing>();
  /** Sound that this page publishes, by the publication's name. */
  private readonly sound = new Map<string, MediaStreamTrack>();
  private readonly troubles = new Set<string>();
  private viewpoint: Viewpoint | undefined;
  private readonly choices = new Map<string, Choice>();

  constructor(
    options: SessionOptions,
    private readonly workers: Workers,
    private readonly events: ConferenceEvents,
    private readonly decode = true,
  ) {
    this.session = new Session(options, {
      message: (message) => this.take(message),
      state: (state, why) => {
        if (state === "closed") {
          this.connection?.close();
        }
        events.state(state, why);
      },
      connected: () => this.connection?.state === "connected",
    });
  }

  start(): void {
    this.session.start();
  }

  leave(): void {
    this.session.leave();
  }

  /** Begins to publish something. */
  publish(outgoing: Outgoing): void {
    this.outgoing.add(outgoing);
    if (this.connection) {
      outgoing.entered(true, false);
    }
  }

  unpublish(outgoing: Outgoing): void {
    this.outgoing.delete(outgoing);
  }

  /** Opens a channel for the frames of a publication of this page. */
  channel(publication: string): RTCDataChannel | undefined {
    return this.connection?.publish(publication);
  }

  /** Gives a publication of sound its track. It is to be given before the publication is announced, and taken away after its end. */
  speak(publication: string, track: MediaStreamTrack | undefined): void {
    if (track) {
      this.sound.set(publication, track);
    } else {
      this.sound.delete(publication);
    }
  }

  /** Says where the eye is. */
  look(viewpoint: Viewpoint): void {
    this.viewpoint = viewpoint;
    this.session.send({ type: "viewpoint", at_us: nowMicroseconds() + Math.round(this.session.clock.ahead * 1000), ...viewpoint });
  }

  /** Chooses a quality for a tile, or for a whole publication where the choice names no tile. */
  choose(choice: Choice): void {
    this.choices.set(`${choice.participant}\n${choice.publication}\n${choice.tile ?? ""}`, choice);
    this.session.send({ type: "set_quality", choices: [choice] });
  }

  recycle(frame: DecodedFrame): void {
    this.connection?.recycle(frame.mid, frame.points);
  }

  publication(ref: { participant: string; publication: string }): Publication | undefined {
    return this.participants.get(ref.participant)?.publications.find((p) => p.name === ref.publication);
  }

  statistics(): Promise<Map<string, { packets: number; lost: number; bytes: number; nacks: number }>> {
    return this.connection?.statistics() ?? Promise.resolve(new Map());
  }

  /** What a worker reports. */
  report(report: WorkerReport): void {
    if (report.type === "failure") {
      this.meters.failed(report.mid);
      const track = this.slots.get(report.mid)?.track;
      this.trouble(track ? `${track.participant} / ${track.publication} cannot be shown. ${report.message}` : report.message);
      return;
    }
    if (report.type === "opened") {
      this.meters.opened++;
      return;
    }
    const slot = this.slots.get(report.mid);
    if (!slot?.track || report.received < slot.since) {
      this.recycle(report);
      return;
    }
    this.meters.decoded(slot, report, this.session.clock.ahead);
    this.events.frame(slot.track, report);
  }

  /** Tells a person once of each thing that is wrong. */
  private trouble(message: string): void {
    if (!this.troubles.has(message)) {
      this.troubles.add(message);
      this.events.trouble(message);
    }
  }

  private take(message: ServerMessage): void {
    for (const outgoing of this.outgoing) {
      if (outgoing.heard(message)) {
        return;
      }
    }
    switch (message.type) {
      case "joined":
        this.joined(message);
        break;
      case "participant_joined":
        this.arrived(message.participant);
        break;
      case "participant_left":
        this.left(message.identity);
        break;
      case "published":
        this.publishes(message.participant, message.publication);
        break;
      case "unpublished":
        this.unpublishes(message.participant, message.publication);
        break;
      case "offer":
        this.connection?.offered(message.offer, message.sdp, message.media).catch((e: unknown) => this.trouble(`offer ${message.offer}: ${e}`));
        break;
      case "candidate":
        this.connection?.candidate(message.candidate, message.mid, message.line_index).catch((e: unknown) => this.trouble(`candidate: ${e}`));
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
      case "error":
        this.trouble(message.message);
        break;
      case "closing":
        this.trouble(message.message);
        break;
      default:
        // ok, time_reply, and what later versions of the protocol may add.
        break;
    }
  }

  private joined(message: Extract<ServerMessage, { type: "joined" }>): void {
    this.room = message.room;
    this.identity = message.identity;
    const renewed = !message.resumed || this.connection?.state !== "connected";
    if (renewed) {
      this.renew(message.ice_servers);
    }
    for (const outgoing of this.outgoing) {
      outgoing.entered(renewed, message.resumed ?? false);
    }
    const present = new Set(message.participants.map((p) => p.identity));
    for (const identity of [...this.participants.keys()]) {
      if (!present.has(identity)) {
        this.left(identity);
      }
    }
    for (const participant of message.participants) {
      this.arrived(participant);
    }
    // What was said while the websocket was broken is said again.
    if (!message.resumed && this.choices.size > 0) {
      this.session.send({ type: "set_quality", choices: [...this.choices.values()] });
    }
    if (this.viewpoint) {
      this.look(this.viewpoint);
    }
  }

  /** Begins a new peer connection: lines and generations begin anew with it. */
  private renew(iceServers: RTCIceServer[]): void {
    this.connection?.close();
    this.slots.clear();
    const connection = new Connection(iceServers, this.workers, this.decode, this.sound, {
      send: (m) => {
        if (this.connection === connection) {
          this.session.send(m);
        }
      },
      frame: (report) => this.report(report),
      audio: (mid, track) => this.events.audio(mid, track),
      state: (state) => this.watch(connection, state),
    });
    this.connection = connection;
  }

  /** The server restarts ICE by itself when a path is lost; where nothing comes of it, the session is resumed with a new connection. */
  private watch(connection: Connection, state: RTCPeerConnectionState): void {
    if (state !== "failed") {
      return;
    }
    setTimeout(() => {
      if (this.connection === connection && connection.state === "failed") {
        this.session.reconnect();
      }
    }, reconnectAfter);
  }

  private arrived(participant: Participant): void {
    const before = this.participants.get(participant.identity);
    this.participants.set(participant.identity, { identity: participant.identity, publications: [] });
    for (const gone of before?.publications ?? []) {
      if (!participant.publications.some((p) => p.name === gone.name)) {
        this.events.unpublished(participant.identity, gone.name);
      }
    }
    for (const publication of participant.publications) {
      this.publishes(participant.identity, publication);
    }
    this.events.people();
  }

  private left(identity: string): void {
    for (const publication of this.participants.get(identity)?.publications ?? []) {
      this.events.unpublished(identity, publication.name);
    }
    this.participants.delete(identity);
    this.events.people();
  }

  private publishes(identity: string, publication: Publication): void {
    const participant = this.participants.get(identity);
    if (!participant) {
      return;
    }
    participant.publications = [...participant.publications.filter((p) => p.name !== publication.name), publication];
    this.events.published(identity, publication);
  }

  private unpublishes(identity: string, name: string): void {
    const participant = this.participants.get(identity);
    if (participant) {
      participant.publications = participant.publications.filter((p) => p.name !== name);
    }
    this.events.unpublished(identity, name);
  }

  private assigned(assignments: Extract<ServerMessage, { type: "assignments" }>["assignments"]): void {
    for (const { mid } of assignments) {
      this.meters.forget(mid);
    }
    const slots = this.slots.assign(assignments, performance.timeOrigin + performance.now());
    if (slots.length > 0) {
      this.session.send({ type: "acknowledge", slots });
    }
  }

  private clearOff(mids: string[]): void {
    for (const mid of mids) {
      const slot = this.slots.get(mid);
      if (slot?.track && slot.quality === -1) {
        this.events.cleared(slot.track);
      }
    }
  }

  /** The slots that carry video at present. */
  *tiles(): Generator<Slot & { track: TileRef }> {
    for (const slot of this.slots) {
      if (slot.track && this.publication(slot.track)?.kind === "video") {
        yield slot as Slot & { track: TileRef };
      }
    }
  }
}
