// How fast a data channel empties, made of looks at it. It is pure: looks say when they were.
//
// Browsers tell seldom of what has left. Chromium does when that is 100 KiB, or when the channel is empty, and where SCTP repeats what was lost, nothing leaves for seconds. So a rate is
// measured from one time that something has left to the next, never from look to look; and what is still there says that the rate is no more than all of it since.

/** The rate is that of so many milliseconds. */
const span = 2000;
/** What was measured in less time says nothing: a page is told late, and of several things at once. */
const leastTime = 200;
/** That nothing leaves for less time is common: SCTP repeats what was lost after 0.4 to 0.8 s where nothing comes behind it. */
const leastStill = 1000;
/** A page that looks more rarely was held up itself, and is told only afterwards of what has left meanwhile: no more than this counts of the time between. */
const longestLook = 250;

export class Outflow {
  /** What has left within what time, the latest last, and when that was seen. */
  private measured: { at: number; bytes: number; time: number }[] = [];
  /** Since when the channel has had something, or when something has left it last; undefined of an empty one. */
  private since: { at: number; left: number } | undefined;
  private lookedAt = -Infinity;
  private queued = 0;
  private still = 0;

  /** A look at the channel, before anything is put there or after: so many bytes have left it in all, and so many are in it. */
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
      // When it ran empty is known as well as it was looked at.
      if (queued > 0 || between <= time / 2) {
        this.measured.push({ at, bytes: left - since.left, time });
      }
    }
  }

  /** What leaves the channel in bit/s while it has something; undefined where that is not known. Where nothing is held up, the uplink may carry more. */
  rate(now: number): number | undefined {
    const before = this.before(now);
    if (this.still < leastStill) {
      return before;
    }
    return Math.min((8000 * this.queued) / this.still, before ?? Infinity);
  }

  /** For how many milliseconds something has been overdue that is in the channel, by the rate before. */
  stalled(now: number): number {
    const before = this.before(now);
    return before ? Math.max(0, this.still - (8000 * this.queued) / before) : this.still;
  }

  /** The rate at which things have left. */
  private before(now: number): number | undefined {
    const from = (this.since?.at ?? now) - span;
    this.measured = this.measured.filter((m) => m.at >= from);
    const time = this.measured.reduce((sum, m) => sum + m.time, 0);
    return time >= leastTime ? (8000 * this.measured.reduce((sum, m) => sum + m.bytes, 0)) / time : undefined;
  }
}
