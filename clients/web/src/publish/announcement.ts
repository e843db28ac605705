// The announcement of a publication to the server, which every session needs.

import type { ClientMessage, Publication, ServerMessage } from "../signal/messages";

export class Announcement {
  /** The server has accepted the publication. */
  announced = false;
  /** The publication was sent to the server, and not rejected so far. */
  known = false;
  private attempt = 0;

  /**
   * @param send sends a message, and reports whether the session is connected
   * @param describe returns the present description
   */
  constructor(
    private readonly name: string,
    private readonly send: (message: ClientMessage) => boolean,
    private readonly describe: () => Publication,
  ) {}

  /** The session was entered. Announces the publication unless the server still has it, and reports whether it has. */
  entered(resumed: boolean): boolean {
    if (resumed && this.announced) {
      return true;
    }
    this.announced = false;
    this.known = this.send({ type: "publish", id: `${this.name}/${++this.attempt}`, publication: this.describe() });
    return false;
  }

  /** Returns the server's answer to the announcement; undefined if the message is another one. */
  answer(message: ServerMessage): "accepted" | { code: string; message: string } | undefined {
    if ((message.type !== "ok" && message.type !== "error") || message.id !== `${this.name}/${this.attempt}`) {
      return undefined;
    }
    // The server already has the publication from before the websocket broke.
    if (message.type === "ok" || message.code === "exists") {
      this.announced = true;
      return "accepted";
    }
    this.known = false;
    return message;
  }
}
