// The peer connection of a session. It is replaced after a failure, or if the browser cannot
// continue with it.

import type { ClientMessage, ServerMessage } from "../signal/messages";
import type { Encryption } from "../sframe/encryption";
import { Connection, type LineStatistics, type UplinkStatistics, type Workers } from "./connection";
import type { Source } from "./source";
import type { DecodedFrame } from "./traffic";

export interface LinkEvents {
  send(message: ClientMessage): void;
  audio(mid: string, track: MediaStreamTrack): void;
  video(mid: string, track: MediaStreamTrack): void;
  trouble(message: string): void;
  /** The copy of a data message has arrived. */
  copied(json: string): void;
  /** The connection failed: the session must be resumed with a new one. */
  lost(): void;
}

/**
 * The time in milliseconds for a failed connection to recover, and the wait before the next attempt
 * if a connection ended before it was established.
 */
const patience = 4000;

export class Link {
  private connection: Connection | undefined;
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

  /** Replaces the connection by a new one. */
  renew(iceServers: RTCIceServer[]): void {
    this.connection?.close();
    const { events } = this;
    const connection = new Connection(iceServers, this.workers, this.decode, this.sources, {
      send: (message) => {
        if (this.connection === connection) {
          events.send(message);
        }
      },
      audio: (mid, track) => events.audio(mid, track),
      video: (mid, track) => events.video(mid, track),
      state: (state) => this.watch(connection, state),
      copied: (json) => events.copied(json),
    }, this.encryption);
    this.connection = connection;
  }

  close(): void {
    this.connection?.close();
    this.connection = undefined;
  }

  /** Answers an offer of the server. */
  offered({ offer, sdp, media }: Extract<ServerMessage, { type: "offer" }>): void {
    const { connection } = this;
    connection?.offered(offer, sdp, media).catch((error: unknown) => {
      if (this.connection === connection) {
        this.events.trouble(`The browser cannot answer the server's offer: ${error}`);
        this.replace(connection);
      }
    });
  }

  candidate({ candidate, mid, line_index }: Extract<ServerMessage, { type: "candidate" }>): void {
    const { connection } = this;
    connection?.candidate(candidate, mid, line_index).catch((error: unknown) => {
      if (this.connection === connection && connection.state !== "closed") {
        this.events.trouble(`candidate: ${error}`);
      }
    });
  }

  /** Opens a channel for the frames of a publication of this page. */
  publish(publication: string): RTCDataChannel | undefined {
    return this.connection?.publish(publication);
  }

  /** The channel for copies of data messages. */
  get messages(): RTCDataChannel | undefined {
    return this.connection?.messages;
  }

  /** Records that a line carries another track. */
  assigned(mid: string): void {
    this.connection?.assigned(mid);
  }

  /** Returns the memory of a displayed frame to the worker that decoded it. */
  recycle(frame: DecodedFrame): void {
    this.connection?.recycle(frame);
  }

  /** Returns the state of the uplink; undefined without a connection. */
  uplink(): Promise<UplinkStatistics | undefined> {
    return this.connection?.uplink() ?? Promise.resolve(undefined);
  }

  statistics(): Promise<Map<string, LineStatistics>> {
    return this.connection?.statistics() ?? Promise.resolve(new Map());
  }

  /**
   * After a loss of the path, the server restarts ICE by itself. A connection is abandoned if that
   * fails.
   */
  private watch(connection: Connection, state: RTCPeerConnectionState): void {
    if (state === "connected") {
      this.unanswered = 0;
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
