// A room as an application sees it. The session itself is the conference, which the viewer uses, too.

import type { Points } from "../decode/points";
import type { Raster } from "../decode/rgbd/raster";
import { transforms, Workers } from "../media/connection";
import type { DecodedFrame } from "../media/traffic";
import { cannotEncrypt, Encryption } from "../sframe/encryption";
import type { Reason } from "../sframe/opener";
import { parseKey } from "../sframe/secret";
import type { Data, Participant, Placement, Pose, Publication, TileRef, Viewpoint } from "../signal/messages";
import { refusalOf } from "../signal/rooms";
import type { SessionState } from "../signal/session";
import { identityOf } from "../token";
import { Conference } from "../viewer/conference";
import { Emitter } from "./events";
import { JoinError, type JoinOptions, type Keys, pagesURL, signallingURL } from "./options";
import type {
  CustomOptions, CustomPublication, DepthOptions, DepthSource, OwnPublication, PictureOptions, PointOptions, PointPublication, Publishing, SoundOptions, SoundPublication,
} from "./publishing";
import { type RoomStatistics, statisticsOf } from "./statistics";
import { loadWorkers } from "./workers";

export type RoomState = SessionState;

/** A decoded frame of one tile. Times are milliseconds since 1970 by this host's clock. */
export interface Frame extends TileRef {
  /** The index of the quality in the publication. */
  quality: number;
  /** Counts the captures of a publication: the same for all tiles of one. */
  number: number;
  /** The bytes of the frame as received. */
  bytes: number;
  /** The capture time by the server's clock; NaN if the publisher does not send it. */
  captured: number;
  received: number;
  decoded: number;
  points: Points;
  /** With the option rasters, the image of a depth camera. Then only the count of points is set. */
  raster?: Raster;
  /**
   * Returns the memory of the points or the raster for later frames, and closes the raster's image.
   * They must not be used afterwards. Without the call the memory is garbage.
   */
  release(): void;
}

/** A line of the connection with sound. The speaker changes when the server assigns the line to another. */
export interface SoundLine {
  /** The name of the line. A line of a later connection may have the name of a line that has ended. */
  readonly id: string;
  readonly track: MediaStreamTrack;
  /** The present speaker; undefined while the line is unused. */
  readonly participant: string | undefined;
  readonly publication: string | undefined;
}

/** A requested quality: the server's choice, none, an index, or several indices of descriptions. */
export interface QualityChoice {
  participant: string;
  publication: string;
  /** Undefined for all tiles. */
  tile?: number;
  quality: "auto" | "off" | number | number[];
}

/** A received message of another participant, or of the server's operator. */
export interface DataMessage {
  /** Undefined for a message of the operator. */
  participant?: string;
  topic: string;
  text?: string;
  /** Bytes in base64. */
  binary?: string;
}

/** The state of a participant's encryption: decrypted, or the reason why frames are rejected. */
export type EncryptionState = "opened" | "picture" | Reason;

export interface RoomEvents {
  /** The state of the session has changed, with the reason of a loss or of the end. */
  state(state: RoomState, why: string): void;
  /** The session continues on another server, without an interruption. */
  moved(): void;
  /** A participant has joined, or its attributes or its muting have changed. */
  participant(participant: Participant): void;
  /** A participant has left. */
  left(identity: string): void;
  /** The number of participants who are in the room and not in Room.participants has changed. */
  audience(count: number): void;
  published(participant: string, publication: Publication): void;
  unpublished(participant: string, publication: string): void;
  /** A tile has a new frame. With several listeners, none may call release. */
  frame(frame: Frame): void;
  /** A tile is not sent at present. */
  cleared(tile: TileRef): void;
  /** A webcam or a screen is received on a track; undefined when it is not received. */
  picture(of: TileRef, track: MediaStreamTrack | undefined): void;
  /** A line with sound exists. */
  sound(line: SoundLine): void;
  /** A line with sound has ended: after a move to another server, or with a connection that is replaced. */
  soundEnded(id: string): void;
  pose(pose: Pose): void;
  data(message: DataMessage): void;
  /** A sentence about a problem for the user, once for each problem. */
  problem(message: string): void;
}

/** Enters a room. Rejects with a JoinError that has the reason, or with the reason of the signal. */
export async function join(options: JoinOptions): Promise<Room> {
  options.signal?.throwIfAborted();
  if (typeof RTCPeerConnection !== "function") {
    throw new JoinError("This browser has no WebRTC, or it is switched off. Chromium, Chrome, Edge, Firefox and Safari have it.");
  }
  const url = signallingURL(options.url);
  const key = options.key === undefined ? undefined : keyOf(options.key);
  checkServers(options.iceServers);
  await loadWorkers("receive", options.assets?.toString());
  options.signal?.throwIfAborted();
  const room = new Room(options, url, key && new Encryption(key, { opened: () => {}, counted: () => room.counted(), failure: (message) => room.report(message) }));
  await room.enter();
  return room;
}

/** Throws a JoinError if the browser refuses STUN or TURN servers, as those of TURN without a credential. */
function checkServers(iceServers: RTCIceServer[] | undefined): void {
  if (!iceServers) {
    return;
  }
  try {
    new RTCPeerConnection({ iceServers }).close();
  } catch (error) {
    throw new JoinError(`The browser refuses the option iceServers: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function keyOf(text: string): ReturnType<typeof parseKey> {
  const missing = cannotEncrypt();
  if (missing !== undefined) {
    throw new JoinError(missing);
  }
  try {
    return parseKey(text);
  } catch (error) {
    throw new JoinError(error instanceof Error ? error.message : String(error));
  }
}

export class Room {
  /** @internal */
  readonly conference: Conference;
  private readonly emitter: Emitter<RoomEvents>;
  private readonly workers: Workers;
  /** The lines with sound, by id. */
  private readonly lines = new Map<string, SoundLine>();
  private reportedAudience = 0;
  /** The participants as reported to the application, by identity. */
  private readonly reported = new Map<string, string>();
  /** The publications that subscribe has requested, if not everything is received. */
  private readonly subscribed = new Set<string>();
  private readonly problems = new Set<string>();
  private current: RoomState = "connecting";
  private settle: { done(): void; failed(error: unknown): void } | undefined;
  private publishing: Promise<Publishing> | undefined;

  /** @internal */
  constructor(
    private readonly options: JoinOptions,
    private readonly url: string,
    private readonly encryption: Encryption | undefined,
  ) {
    this.emitter = new Emitter(options.on);
    this.workers = new Workers((report) => this.conference.report(report), options.rasters);
    const { token, room, identity, iceServers, delivery } = options;
    const receiveData = delivery === "data" || !transforms();
    this.conference = new Conference(
      { url, receiveData, ...(token ? { token } : {}), ...(room ? { room } : {}), identity: identityOf(identity, token ?? ""), ...(iceServers ? { iceServers } : {}) },
      this.workers,
      {
        frame: (track, frame) => this.frame(track, frame),
        picture: (of, track) => this.emitter.emit("picture", of, track),
        cleared: (track) => this.emitter.emit("cleared", track),
        published: (participant, publication) => this.published(participant, publication),
        unpublished: (participant, publication) => this.emitter.emit("unpublished", participant, publication),
        posed: (pose) => this.emitter.emit("pose", pose),
        audio: (line, track) => this.sounds(line, track),
        silenced: (lines) => lines.forEach((line) => this.silenced(line)),
        people: () => this.people(),
        state: (state, why) => this.entered(state, why),
        moved: () => this.emitter.emit("moved"),
        trouble: (message) => this.report(message),
        data: (message) => this.emitter.emit("data", dataOf(message)),
      },
      options.decode ?? true,
      encryption,
    );
  }

  /** @internal Starts the session, and waits until the room is entered. */
  enter(): Promise<void> {
    const { signal } = this.options;
    const abort = (): void => {
      this.settle?.failed(signal!.reason);
      this.leave();
    };
    signal?.addEventListener("abort", abort);
    return new Promise<void>((done, failed) => {
      this.settle = { done, failed };
      try {
        this.conference.start();
      } catch (error) {
        // Browsers refuse addresses without TLS to pages over https.
        this.conference.leave(`The browser refuses the connection to ${this.url}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }).finally(() => {
      this.settle = undefined;
      signal?.removeEventListener("abort", abort);
    });
  }

  /** The name of the room. */
  get name(): string {
    return this.conference.room;
  }

  /** The name of this participant. */
  get identity(): string {
    return this.conference.identity;
  }

  get state(): RoomState {
    return this.current;
  }

  /**
   * The number of participants who are in the room and not in participants: in a room with a large
   * audience, those who may not publish are not announced.
   */
  get audience(): number {
    return this.conference.audience;
  }

  /** The participants in the room with their publications, this one included. */
  get participants(): ReadonlyMap<string, Participant> {
    return this.conference.participants;
  }

  /** Returns the name to show for a participant: the attribute "name", or the identity. */
  displayName(identity: string): string {
    return this.conference.name(identity);
  }

  /** The lines with sound at present. */
  get soundLines(): readonly SoundLine[] {
    return [...this.lines.values()];
  }

  /** Adds a listener of an event, and returns the function that removes it. */
  on<K extends keyof RoomEvents>(event: K, listener: RoomEvents[K]): () => void {
    return this.emitter.on(event, listener);
  }

  /** Leaves the room. All publications of this participant end. */
  leave(): void {
    this.conference.leave();
  }

  /** Requests a quality, which otherwise the server chooses by the view and the capacity of the link. */
  choose({ participant, publication, tile, quality }: QualityChoice): void {
    this.conference.choose({ participant, publication, ...(tile === undefined ? {} : { tile }), quality: quality === "off" ? -1 : quality });
  }

  /** Receives a publication, if subscribe is false in the options or after unsubscribe. */
  subscribe(participant: string, publication: string): void {
    this.subscribed.add(keyOfPublication(participant, publication));
    this.choose({ participant, publication, quality: "auto" });
  }

  /** Receives nothing of a publication. */
  unsubscribe(participant: string, publication: string): void {
    this.subscribed.delete(keyOfPublication(participant, publication));
    this.choose({ participant, publication, quality: "off" });
  }

  /**
   * Tells the server the position and the view of the eye, by which it chooses qualities. Thirty
   * messages per second are enough.
   */
  look(viewpoint: Viewpoint): void {
    this.conference.look(viewpoint);
  }

  /**
   * Tells the server where this participant sees the objects that have no pose of their own. Reports
   * whether the message was sent, which needs a connection.
   */
  arrange(objects: readonly Placement[]): boolean {
    return this.conference.session.send({ type: "arrange", objects: [...objects] });
  }

  /**
   * Sends a message to all other participants, in order and without loss. Rejects if the server
   * refuses the message, or if the room is left before the server's reply.
   */
  async say(topic: string, text: string): Promise<void> {
    const refused = await this.conference.data.say(topic, text);
    if (refused !== undefined) {
      throw new Error(`The message was not accepted: ${refused}`);
    }
  }

  /** Returns the figures of the last two seconds, and the totals since the room was entered. */
  statistics(): Promise<RoomStatistics> {
    return statisticsOf(this.conference);
  }

  /** The keys of the room; undefined without the option key. */
  get keys(): Keys | undefined {
    return this.encryption;
  }

  /** The state of the encryption of each participant whose state is known. */
  get encryptionStates(): ReadonlyMap<string, EncryptionState> {
    return this.conference.secrecy.states();
  }

  /** Publishes an animated person, another one for each identity. No camera is needed. */
  async publishFigure(options: PointOptions = {}): Promise<PointPublication> {
    return (await this.publisher()).figure(options);
  }

  /** Publishes the points of a depth camera. */
  async publishDepth(source: DepthSource, options: DepthOptions = {}): Promise<PointPublication> {
    return (await this.publisher()).depth(source, options);
  }

  /** Publishes points that the application writes. */
  async publishPoints(options: CustomOptions): Promise<CustomPublication> {
    return (await this.publisher()).custom(options);
  }

  /**
   * Publishes sound. The track stops with the publication. Rejects if the room has a key and the
   * browser cannot encrypt sound.
   */
  async publishSound(track: MediaStreamTrack, options: SoundOptions = {}): Promise<SoundPublication> {
    return (await this.publisher()).sound(track, options);
  }

  /**
   * Publishes a webcam or a screen. The track stops with the publication. Rejects if the room has a
   * key: webcams and screens cannot be encrypted.
   */
  async publishPicture(track: MediaStreamTrack, options: PictureOptions = {}): Promise<OwnPublication> {
    return (await this.publisher()).picture(track, options);
  }

  private publisher(): Promise<Publishing> {
    if (this.current === "closed") {
      return Promise.reject(new Error("The room was left."));
    }
    return (this.publishing ??= import("./publishing").then(({ Publishing }) => new Publishing(this.conference, this.options.assets?.toString(), (message) => this.report(message))));
  }

  /** @internal Reports each problem once. */
  report(message: string): void {
    if (!this.problems.has(message)) {
      this.problems.add(message);
      this.emitter.emit("problem", message);
    }
  }

  /** @internal The counts of encrypted frames have changed. */
  counted(): void {
    this.conference.warnOfRejected();
  }

  private frame(track: TileRef, frame: DecodedFrame): void {
    const { quality, number, bytes, captured, received, decoded, points, raster } = frame;
    if (this.emitter.count("frame") === 0) {
      this.conference.recycle(frame);
      return;
    }
    let released = false;
    const release = (): void => {
      if (!released) {
        released = true;
        this.conference.recycle(frame);
      }
    };
    this.emitter.emit("frame", { ...track, quality, number, bytes, captured, received, decoded, points, ...(raster ? { raster } : {}), release });
  }

  private published(participant: string, publication: Publication): void {
    const { subscribe = true } = this.options;
    if (!subscribe && participant !== this.identity && !this.subscribed.has(keyOfPublication(participant, publication.name))) {
      this.choose({ participant, publication: publication.name, quality: "off" });
    }
    this.emitter.emit("published", participant, publication);
  }

  private sounds(id: string, track: MediaStreamTrack): void {
    const { conference } = this;
    const line: SoundLine = {
      id,
      track,
      get participant() {
        return conference.slot(id)?.track?.participant;
      },
      get publication() {
        return conference.slot(id)?.track?.publication;
      },
    };
    this.lines.set(id, line);
    this.emitter.emit("sound", line);
  }

  private silenced(id: string): void {
    this.lines.delete(id);
    this.emitter.emit("soundEnded", id);
  }

  /** Reports the participants that have joined, changed or left. */
  private people(): void {
    if (this.reportedAudience !== this.audience) {
      this.reportedAudience = this.audience;
      this.emitter.emit("audience", this.audience);
    }
    for (const identity of this.reported.keys()) {
      if (!this.participants.has(identity)) {
        this.reported.delete(identity);
        this.emitter.emit("left", identity);
      }
    }
    for (const [identity, participant] of this.participants) {
      const state = JSON.stringify([participant.attributes, participant.muted]);
      if (this.reported.get(identity) !== state) {
        this.reported.set(identity, state);
        this.emitter.emit("participant", participant);
      }
    }
  }

  private entered(state: RoomState, why: string): void {
    this.current = state;
    switch (state) {
      case "joined":
        this.settle?.done();
        break;
      case "closed":
        this.settle?.failed(new JoinError(why));
        this.close();
        break;
      case "resuming":
        if (this.options.reconnect === false) {
          this.conference.leave(why);
          return;
        }
        break;
      case "connecting":
        void this.inquire();
        break;
    }
    this.emitter.emit("state", state, why);
  }

  /** Ends the session if the list of rooms rejects the token: browsers do not report why a websocket was rejected. */
  private async inquire(): Promise<void> {
    const refusal = await refusalOf(pagesURL(this.options.url), this.options.token ?? "");
    if (refusal !== undefined) {
      this.conference.leave(refusal);
    }
  }

  private close(): void {
    void this.publishing?.then((publishing) => publishing.close(), () => {});
    this.encryption?.close();
    this.workers.close();
    this.lines.clear();
    this.reported.clear();
  }
}

function keyOfPublication(participant: string, publication: string): string {
  return `${participant}\n${publication}`;
}

function dataOf({ participant, topic = "", text, binary }: Data): DataMessage {
  return { topic, ...(participant === undefined ? {} : { participant }), ...(text === undefined ? {} : { text }), ...(binary === undefined ? {} : { binary }) };
}
