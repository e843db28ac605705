// The last messages of a publication's data channel, for repetition.

/**
 * The number of kept messages, a power of two: 2 MB, or 0.8 s at 20 Mbit/s. The server requests a
 * message for a quarter of a second.
 */
const kept = 2048;

export interface Sent {
  message: Uint8Array<ArrayBuffer>;
  /** The end of the message among all bytes added to the channel so far. */
  end: number;
}

export class History {
  /** A message with the number n is at index n mod kept. */
  private readonly messages: (Sent | undefined)[] = new Array<undefined>(kept);
  private sent = 0;

  /** The number of the next message, modulo 65,536. */
  get next(): number {
    return this.sent % 65_536;
  }

  /** The last message; undefined before the first. */
  get last(): Sent | undefined {
    return this.messages[(this.sent + kept - 1) % kept];
  }

  /** Adds the next message. */
  add(message: Sent): void {
    this.messages[this.sent++ % kept] = message;
  }

  /**
   * Returns the requested messages that are kept. A request has the numbers of messages, 16 bits
   * each, in network byte order.
   */
  requested(request: ArrayBuffer): Sent[] {
    const view = new DataView(request);
    const found: Sent[] = [];
    for (let at = 0; at + 2 <= view.byteLength; at += 2) {
      const number = view.getUint16(at);
      const message = this.messages[number % kept];
      if (message && ((this.sent - 1 - number) & 0xffff) < kept) {
        found.push(message);
      }
    }
    return found;
  }
}
