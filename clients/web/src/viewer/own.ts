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
  /**
   * Handles a message of the server, or of the former server during a move, and reports whether it was
   * for this publication.
   */
  handle(message: ServerMessage, former: boolean): boolean;
  /**
   * The session is on another server, with the previous publications or without. The former connection
   * stays in use until left is called. Absent if the connection itself takes care of the media.
   */
  moved?(resumed: boolean): void;
  /** Reports whether frames still leave over the former connection. */
  moves?(now: number): boolean;
  /** The former connection ends. */
  left?(): void;
}

/** The tracks of a publication that the uplink cannot carry, and the estimate of its rate in bit/s, 0 if unknown. */
export interface GivenUp {
  estimate: number;
  tracks: readonly { tile: number; quality: number }[];
}

export class OwnPublications {
  private readonly outgoing = new Set<Outgoing>();
  /** Ended publications without a reply of the server, by the id of the request. */
  private readonly retracted = new Map<string, string>();
  private retractions = 0;
  private readonly givenUp = new Map<string, GivenUp>();
  /** The given up tracks that the server knows. */
  private told = "[]";

  /** @param send sends a message, and reports whether the session is connected */
  constructor(private readonly send: (message: ClientMessage) => boolean) {}

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

  /** Tells the server which tracks of a publication are given up: the message has those of all publications. */
  giveUp(publication: string, givenUp: GivenUp): void {
    this.givenUp.set(publication, givenUp);
    const gave_up = [...this.givenUp].flatMap(([name, { tracks }]) => tracks.map((track) => ({ publication: name, ...track })));
    const told = JSON.stringify(gave_up);
    if (told !== this.told && this.send({ type: "uplink", estimate_bps: Math.round(givenUp.estimate), gave_up })) {
      this.told = told;
    }
  }

  /**
   * Ends a publication. If the websocket breaks before the server's reply, the request is sent
   * again.
   */
  retract(publication: string): void {
    this.givenUp.delete(publication);
    const id = `retract/${++this.retractions}`;
    this.retracted.set(id, publication);
    this.send({ type: "unpublish", id, publication });
  }

  /** Handles a message of the server, and reports whether it was for a publication of this page. */
  handle(message: ServerMessage, former = false): boolean {
    for (const outgoing of this.outgoing) {
      if (outgoing.handle(message, former)) {
        return true;
      }
    }
    // The server may already have processed the end of a publication.
    return (message.type === "ok" || message.type === "error") && this.retracted.delete(message.id ?? "");
  }

  /** The session was entered, as in Outgoing. */
  entered(renewed: boolean, resumed: boolean): void {
    this.renew(resumed);
    for (const outgoing of this.outgoing) {
      outgoing.entered(renewed, resumed);
    }
  }

  /** The session is on another server, as in Outgoing. */
  moved(resumed: boolean): void {
    this.renew(resumed);
    for (const outgoing of this.outgoing) {
      if (outgoing.moved) {
        outgoing.moved(resumed);
      } else {
        outgoing.entered(true, resumed);
      }
    }
  }

  /** Reports whether frames still leave over the former connection. */
  moves(now: number): boolean {
    return [...this.outgoing].some((outgoing) => outgoing.moves?.(now) ?? false);
  }

  /** The former connection ends. */
  left(): void {
    for (const outgoing of this.outgoing) {
      outgoing.left?.();
    }
  }

  private renew(resumed: boolean): void {
    if (!resumed) {
      this.retracted.clear();
      this.givenUp.clear();
      this.told = "[]";
    }
    for (const [id, publication] of this.retracted) {
      this.send({ type: "unpublish", id, publication });
    }
  }
}
