// The peer connection of a session. It is replaced after a failure, or if the browser cannot
// continue with it. While a session moves to another server, the connection to the former server
// stays in use beside the new one.

import type { ClientMessage, ServerMessage } from "../signal/messages";
import type { Encryption } from "../sframe/encryption";
import { Connection, type LineNames, type LineStatistics, type UplinkStatistics, type Workers } from "./connection";
import type { Source } from "./source";
import type { DecodedFrame } from "./traffic";

export interface LinkEvents {
  send(message: ClientMessage): void;
  /** Sends a message to the server that the session moves from. */
  sendFormer(message: ClientMessage): void;
  audio(line: string, track: MediaStreamTrack): void;
  video(line: string, track: MediaStreamTrack): void;
  trouble(message: string): void;
  /** The copy of a data message has arrived. */
  copied(json: string): void;
  /** The connection is established. */
  connected(): void;
  /** The connection failed: the session must be resumed with a new one. */
  lost(): void;
}

/**
 * The time in milliseconds for a failed connection to recover, and the wait before the next attempt
 * if a connection ended before it was established.
 */
const patience = 4000;

/** The lines of every other connection have these names, since at most two are in use. */
const mark = "*";
const marked: LineNames = (mid) => mid + mark;
const plain: LineNames = (mid) => mid;

export class Link {
  private connection: Connection | undefined;
  /** The connection to the server that the session moves from. */
  private former: Connection | undefined;
  private names = plain;
  /** The number of consecutive connections that ended with an unanswered offer. */
  private unanswered = 0;

  /**
   * @param sources contains the media that this page publishes on lines, by the publication's name
   * @param encryption is undefined if the page has no key
   */
  constructor(
    private readonly workers: Workers,
    private readonly decode: boolean,
    private readonly sources: ReadonlyMap<string, Source>,
    private readonly events: LinkEvents,
    private readonly encryption?: Encryption,
  ) {}

  get live(): boolean {
    return this.connection?.state === "connected";
  }

  /** Reports whether there is a connection, even if it is not yet established. */
  get begun(): boolean {
    return this.connection !== undefined;
  }

  /** Replaces all connections by a new one. */
  renew(iceServers: RTCIceServer[]): void {
    this.close();
    this.begin(iceServers);
  }

  /** Begins a connection to another server beside the present one. */
  move(iceServers: RTCIceServer[]): void {
    this.retire();
    this.former = this.connection;
    this.names = this.names === plain ? marked : plain;
    this.begin(iceServers);
  }

  private begin(iceServers: RTCIceServer[]): void {
    const { events } = this;
    const connection = new Connection(iceServers, this.workers, this.decode, this.sources, {
      send: (message) => {
        if (this.connection === connection) {
          events.send(message);
        } else if (this.former === connection) {
          events.sendFormer(message);
        }
      },
      audio: (line, track) => events.audio(line, track),
      video: (line, track) => events.video(line, track),
      state: (state) => this.watch(connection, state),
      copied: (json) => events.copied(json),
    }, this.encryption, this.names);
    this.connection = connection;
  }

  /** Ends the connection to the server that the session has moved from. */
  retire(): void {
    this.former?.close();
    this.former = undefined;
  }

  close(): void {
    this.retire();
    this.connection?.close();
    this.connection = undefined;
  }

  /** Returns the name of a line of the present connection, or of the former one. */
  line(mid: string, former = false): string {
    return former === (this.names === plain) ? marked(mid) : plain(mid);
  }

  /** Reports whether a line has a name of the former connection. */
  isFormer(line: string): boolean {
    return line.endsWith(mark) === (this.names === plain);
  }

  /** Reports whether media of this page has a line on the former connection only. */
  get needsFormer(): boolean {
    return this.former !== undefined && this.connection?.carries(this.former) === false;
  }

  /** Answers an offer of the present server, or of the former one. */
  offered({ offer, sdp, media }: Extract<ServerMessage, { type: "offer" }>, former = false): void {
    const connection = this.of(former);
    connection?.offered(offer, sdp, media).catch((error: unknown) => {
      if (this.connection === connection) {
        this.events.trouble(`The browser cannot answer the server's offer: ${error}`);
        this.replace(connection);
      }
    });
  }

  candidate({ candidate, mid, line_index }: Extract<ServerMessage, { type: "candidate" }>, former = false): void {
    const connection = this.of(former);
    connection?.candidate(candidate, mid, line_index).catch((error: unknown) => {
      if (this.of(former) === connection && connection.state !== "closed") {
        this.events.trouble(`candidate: ${error}`);
      }
    });
  }

  private of(former: boolean): Connection | undefined {
    return former ? this.former : this.connection;
  }

  /** Opens a channel for the frames of a publication of this page. */
  publish(publication: string): RTCDataChannel | undefined {
    return this.connection?.publish(publication);
  }

  /** The channel for copies of data messages. */
  get messages(): RTCDataChannel | undefined {
    return this.connection?.messages;
  }

  /** Records that a line carries another track, whose frames arrive from a time on, in milliseconds since 1970. */
  assigned(line: string, since: number): void {
    this.connection?.assigned(line, since);
    this.former?.assigned(line, since);
  }

  /** Returns the memory of a displayed frame to the worker that decoded it. */
  recycle(frame: DecodedFrame): void {
    this.connection?.recycle(frame);
    this.former?.recycle(frame);
  }

  /** Returns the state of the uplink; undefined without a connection. */
  uplink(): Promise<UplinkStatistics | undefined> {
    return this.connection?.uplink() ?? Promise.resolve(undefined);
  }

  /** Returns the browser's counts for each line, by its name. */
  async statistics(): Promise<Map<string, LineStatistics>> {
    const all = await Promise.all([this.former?.statistics(), this.connection?.statistics()]);
    return new Map(all.flatMap((lines) => [...(lines ?? [])]));
  }

  /**
   * After a loss of the path, the server restarts ICE by itself. A connection is abandoned if that
   * fails.
   */
  private watch(connection: Connection, state: RTCPeerConnectionState): void {
    if (state === "connected" && this.connection === connection) {
      this.unanswered = 0;
      this.events.connected();
    }
    if (state === "failed") {
      setTimeout(() => connection.state === "failed" && this.lose(connection), patience);
    }
  }

  /**
   * A connection with an unanswered offer receives nothing new. The next connection is delayed if
   * the previous one ended in the same way.
   */
  private replace(connection: Connection): void {
    connection.close();
    setTimeout(() => this.lose(connection), this.unanswered++ === 0 ? 0 : patience);
  }

  private lose(connection: Connection): void {
    if (this.connection === connection) {
      this.events.lost();
    }
  }
}
