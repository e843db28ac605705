// Measures the output rate of a data channel from periodic looks. The logic is pure: looks have the
// time as an argument.
//
// Browsers report progress rarely. Chromium does after 100 KiB, or when the channel is empty, and
// during retransmissions of SCTP nothing leaves for seconds. So a rate is measured between two
// times of progress, never between looks. Data that remains in the channel bounds the rate from
// above by its size over the time since then.

/** The period in milliseconds over which the rate is measured. */
const span = 2000;
/** The minimum time of a measurement: a page is informed late, and of several events at once. */
const leastTime = 200;
/**
 * The minimum time without progress that counts: SCTP retransmits after 0.4 to 0.8 s if no later
 * data arrives.
 */
const leastStill = 1000;
/**
 * The maximum counted time between looks. A page with longer intervals was itself delayed, and
 * learns of earlier progress only afterwards.
 */
const longestLook = 250;

export class Outflow {
  /**
   * The bytes that left, the time that this took, and the time of the observation, the latest last.
   */
  private measured: { at: number; bytes: number; time: number }[] = [];
  /**
   * The time since when the channel has had data, or of its last progress; undefined if it is
   * empty.
   */
  private since: { at: number; left: number } | undefined;
  private lookedAt = -Infinity;
  private queued = 0;
  private still = 0;

  /**
   * Records a look at the channel before or after adding data: the total bytes that have left, and
   * the bytes in the channel.
   */
  look(at: number, left: number, queued: number): void {
    const between = at - this.lookedAt;
    this.lookedAt = at;
    this.queued = queued;
    const { since } = this;
    if (since && left === since.left) {
      this.still += Math.min(between, longestLook);
      return;
    }
    this.still = 0;
    this.since = queued > 0 ? { at, left } : undefined;
    if (since) {
      const time = at - since.at;
      // The time at which the channel became empty is known with the precision of the looks.
      if (queued > 0 || between <= time / 2) {
        this.measured.push({ at, bytes: left - since.left, time });
      }
    }
  }

  /**
   * Returns the output rate of the channel in bit/s while it has data; undefined if unknown. If
   * nothing is delayed, the uplink may be faster.
   */
  rate(now: number): number | undefined {
    const before = this.before(now);
    if (this.still < leastStill) {
      return before;
    }
    return Math.min((8000 * this.queued) / this.still, before ?? Infinity);
  }

  /**
   * Returns the milliseconds for which data in the channel has been overdue at the previous rate.
   */
  stalled(now: number): number {
    const before = this.before(now);
    return before ? Math.max(0, this.still - (8000 * this.queued) / before) : this.still;
  }

  /** Returns the rate of past output. */
  private before(now: number): number | undefined {
    const from = (this.since?.at ?? now) - span;
    this.measured = this.measured.filter((m) => m.at >= from);
    const time = this.measured.reduce((sum, m) => sum + m.time, 0);
    return time >= leastTime ? (8000 * this.measured.reduce((sum, m) => sum + m.bytes, 0)) / time : undefined;
  }
}
