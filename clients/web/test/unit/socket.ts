// The server's side of signalling, simulated by tests.

import type { ClientMessage, ServerMessage } from "../../src/signal/messages";

/** A websocket with a test as the server. */
export class FakeSocket {
  static readonly OPEN = 1;
  static all: FakeSocket[] = [];
  readyState = 0;
  sent: ClientMessage[] = [];
  onopen: (() => void) | undefined;
  onmessage: ((event: { data: string }) => void) | undefined;
  onclose: ((event: { reason: string }) => void) | undefined;

  constructor(readonly url: URL) {
    FakeSocket.all.push(this);
  }

  send(data: string): void {
    this.sent.push(JSON.parse(data) as ClientMessage);
  }

  close(): void {
    this.readyState = 3;
    this.onclose?.({ reason: "" });
  }

  open(): void {
    this.readyState = 1;
    this.onopen?.();
  }

  say(message: ServerMessage): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

/** The server's reply to a successful join. */
export const joined: Extract<ServerMessage, { type: "joined" }> = {
  type: "joined", id: "join", room: "lab", identity: "ada", session: "s1", resume: { secret: "secret", grace_ms: 15_000 }, ice_servers: [], participants: [],
  limits: { frame_bytes: 1 },
};
