// The publications of this page for the conference: those that receive session events, and those
// that ended without a reply of the server so far.

import type { ClientMessage, ServerMessage } from "../signal/messages";

/** A publication: it receives session events in addition to the viewer. */
export interface Outgoing {
  /**
   * The session was entered: with a new connection or the previous one, with the previous
   * publications or without.
   */
  entered(renewed: boolean, resumed: boolean): void;
  /** Handles a message of the server, and reports whether it was for this publication. */
  handle(message: ServerMessage): boolean;
}

export class OwnPublications {
  private readonly outgoing = new Set<Outgoing>();
  /** Ended publications without a reply of the server, by the id of the request. */
  private readonly retracted = new Map<string, string>();
  private retractions = 0;

  constructor(private readonly send: (message: ClientMessage) => void) {}

  /** Adds a publication. If the session was already entered, it is informed immediately. */
  add(outgoing: Outgoing, entered: boolean): void {
    this.outgoing.add(outgoing);
    if (entered) {
      outgoing.entered(true, false);
    }
  }

  delete(outgoing: Outgoing): void {
    this.outgoing.delete(outgoing);
  }

  /**
   * Ends a publication. If the websocket breaks before the server's reply, the request is sent
   * again.
   */
  retract(publication: string): void {
    const id = `retract/${++this.retractions}`;
    this.retracted.set(id, publication);
    this.send({ type: "unpublish", id, publication });
  }

  /** Handles a message of the server, and reports whether it was for a publication of this page. */
  handle(message: ServerMessage): boolean {
    for (const outgoing of this.outgoing) {
      if (outgoing.handle(message)) {
        return true;
      }
    }
    // The server may already have processed the end of a publication.
    return (message.type === "ok" || message.type === "error") && this.retracted.delete(message.id ?? "");
  }

  /** The session was entered, as in Outgoing. */
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
