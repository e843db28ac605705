// Detection of repeated counters of one key.

/**
 * The number of counters up to the newest that are told apart; older ones are rejected. A sender of
 * 9 tiles at 3 qualities, 30 times a second, with sound uses 860 a second: 76 s.
 */
const size = 65_536;
const sizeBig = BigInt(size);

/** The counters of accepted frames (RFC 9605, section 9.3; RFC 4303, section 3.4.3). */
export class ReplayWindow {
  private newest = -1n;
  private readonly seen = new Uint8Array(size / 8);

  /** Reports whether a counter was not accepted before, as far as is known. */
  fresh(counter: bigint): boolean {
    return counter > this.newest || (this.newest - counter < sizeBig && !this.marked(counter));
  }

  /**
   * Accepts the counter of a frame that is authentic, and reports whether it was not accepted
   * before.
   */
  accept(counter: bigint): boolean {
    if (!this.fresh(counter)) {
      return false;
    }
    if (counter - this.newest >= sizeBig) {
      this.seen.fill(0);
    } else {
      for (let passed = this.newest + 1n; passed < counter; passed++) {
        this.mark(passed, false);
      }
    }
    this.mark(counter, true);
    if (counter > this.newest) {
      this.newest = counter;
    }
    return true;
  }

  private marked(counter: bigint): boolean {
    const at = Number(counter % sizeBig);
    return ((this.seen[at >> 3]! >> (at & 7)) & 1) === 1;
  }

  private mark(counter: bigint, on: boolean): void {
    const at = Number(counter % sizeBig);
    const bit = 1 << (at & 7);
    this.seen[at >> 3] = on ? this.seen[at >> 3]! | bit : this.seen[at >> 3]! & ~bit;
  }
}
