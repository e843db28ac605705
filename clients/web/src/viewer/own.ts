// What this page publishes, as the conference knows it: who is to hear of the session for it, and which of it has ended while the server has not said so yet.

import type { ClientMessage, ServerMessage } from "../signal/messages";

/** One that publishes: it hears of the session beside what is received. */
export interface Outgoing {
  /** The session was entered: with a connection that is new or the one before, with what was published before or without. */
  entered(renewed: boolean, resumed: boolean): void;
  /** Hears what the server says, and tells whether that was meant for it. */
  heard(message: ServerMessage): boolean;
}

export class OwnPublications {
  private readonly outgoing = new Set<Outgoing>();
  /** Publications that have ended, for all that the server has said so far, by the id of the request. */
  private readonly retracted = new Map<string, string>();
  private retractions = 0;

  constructor(private readonly send: (message: ClientMessage) => void) {}

  /** Takes one that publishes; where the session has been entered already, it hears of that now. */
  add(outgoing: Outgoing, entered: boolean): void {
    this.outgoing.add(outgoing);
    if (entered) {
      outgoing.entered(true, false);
    }
  }

  delete(outgoing: Outgoing): void {
    this.outgoing.delete(outgoing);
  }

  /** Ends a publication. Where the websocket breaks before the server has answered, it is told again. */
  retract(publication: string): void {
    const id = `retract/${++this.retractions}`;
    this.retracted.set(id, publication);
    this.send({ type: "unpublish", id, publication });
  }

  /** Hears what the server says, and tells whether it was meant for what is published here. */
  heard(message: ServerMessage): boolean {
    for (const outgoing of this.outgoing) {
      if (outgoing.heard(message)) {
        return true;
      }
    }
    // Of what is not there any more the server may have known before.
    return (message.type === "ok" || message.type === "error") && this.retracted.delete(message.id ?? "");
  }

  /** The session was entered, as Outgoing has it. */
  entered(renewed: boolean, resumed: boolean): void {
    if (!resumed) {
      this.retracted.clear();
    }
    for (const [id, publication] of this.retracted) {
      this.send({ type: "unpublish", id, publication });
    }
    for (const outgoing of this.outgoing) {
      outgoing.entered(renewed, resumed);
    }
  }
}
