// The attempt to connect to another server beside the present one, as the message moved with
// make_before_break requests.

import type { ClientMessage, ServerMessage } from "./messages";
import { maxMoves, type Servers } from "./servers";

type Joined = Extract<ServerMessage, { type: "joined" }>;

export interface MakingEvents {
  /** Opens a websocket to an address. */
  open(address: string): WebSocket;
  /** Returns the join that resumes the session with a ticket and a new peer connection. */
  join(ticket: string): ClientMessage;
  /** The server has accepted the session. The websocket belongs to the listener from then on. */
  joined(socket: WebSocket, address: string, message: Joined): void;
  /** The attempt has ended without a session. */
  failed(): void;
}

export class Making {
  private socket: WebSocket | undefined;
  private moves = 0;
  private readonly timer: ReturnType<typeof setTimeout>;

  /**
   * @param address is the websocket's address of the other server
   * @param limit is the time for the attempt in milliseconds
   */
  constructor(
    address: string,
    ticket: string,
    limit: number,
    private readonly servers: Servers,
    private readonly events: MakingEvents,
  ) {
    this.timer = setTimeout(() => this.fail(), limit);
    this.visit(address, ticket);
  }

  private visit(address: string, ticket: string): void {
    const socket = this.events.open(address);
    this.socket = socket;
    socket.onopen = () => socket.send(JSON.stringify(this.events.join(ticket)));
    socket.onmessage = ({ data }) => {
      if (this.socket === socket) {
        this.take(socket, address, JSON.parse(data as string) as ServerMessage);
      }
    };
    socket.onclose = () => {
      if (this.socket === socket) {
        this.fail();
      }
    };
  }

  private take(socket: WebSocket, address: string, message: ServerMessage): void {
    if (message.type === "joined") {
      clearTimeout(this.timer);
      this.socket = undefined;
      this.events.joined(socket, address, message);
      return;
    }
    const next = message.type === "moved" ? this.servers.address(message.url) : undefined;
    if (message.type !== "moved" || next === undefined || ++this.moves > maxMoves) {
      this.fail();
      return;
    }
    this.socket = undefined;
    socket.close();
    this.visit(next, message.ticket);
  }

  private fail(): void {
    this.cancel();
    this.events.failed();
  }

  /** Ends the attempt. */
  cancel(): void {
    clearTimeout(this.timer);
    const { socket } = this;
    this.socket = undefined;
    socket?.close();
  }
}
