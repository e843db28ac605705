// The peer connection of a session: begun anew where it failed, or where the browser could not go on with it.

import type { Points } from "../decode/points";
import type { ClientMessage, ServerMessage } from "../signal/messages";
import { Connection, type LineStatistics, type Workers } from "./connection";

export interface LinkEvents {
  send(message: ClientMessage): void;
  audio(mid: string, track: MediaStreamTrack): void;
  trouble(message: string): void;
  /** Nothing comes of the connection: the session is to be resumed with a new one. */
  lost(): void;
}

/** How long a connection that failed is given to come back, and how long one more is waited for where one came to nothing before it lived, in milliseconds. */
const patience = 4000;

export class Link {
  private connection: Connection | undefined;
  /** Connections in a row that ended with an offer that could not be answered. */
  private unanswered = 0;

  /**
   * @param sound are the tracks of what this page publishes as sound, by the publication's name
   */
  constructor(
    private readonly workers: Workers,
    private readonly decode: boolean,
    private readonly sound: ReadonlyMap<string, MediaStreamTrack>,
    private readonly events: LinkEvents,
  ) {}

  get live(): boolean {
    return this.connection?.state === "connected";
  }

  /** Tells whether there is a connection, be it that it is still on its way. */
  get begun(): boolean {
    return this.connection !== undefined;
  }

  /** Begins a new connection in place of the one before. */
  renew(iceServers: RTCIceServer[]): void {
    this.connection?.close();
    const { events } = this;
    const connection = new Connection(iceServers, this.workers, this.decode, this.sound, {
      send: (message) => {
        if (this.connection === connection) {
          events.send(message);
        }
      },
      audio: (mid, track) => events.audio(mid, track),
      state: (state) => this.watch(connection, state),
    });
    this.connection = connection;
  }

  close(): void {
    this.connection?.close();
    this.connection = undefined;
  }

  /** Answers an offer of the server's. */
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

  /** Gives shown points back to the worker that they came from. */
  recycle(mid: string, points: Points): void {
    this.connection?.recycle(mid, points);
  }

  statistics(): Promise<Map<string, LineStatistics>> {
    return this.connection?.statistics() ?? Promise.resolve(new Map());
  }

  /** The server restarts ICE by itself when a path is lost: a connection is given up where nothing has come of that. */
  private watch(connection: Connection, state: RTCPeerConnectionState): void {
    if (state === "connected") {
      this.unanswered = 0;
    }
    if (state === "failed") {
      setTimeout(() => connection.state === "failed" && this.lose(connection), patience);
    }
  }

  /** Nothing new comes on a connection on which an offer was not answered. The next one is waited for where one has just ended in the same way. */
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
