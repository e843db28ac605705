// Decides how many qualities of a webcam or a screen the uplink and the processor can carry, from
// the lowest on. The logic is pure: each step has the observations and the time as arguments.

/** The state of the senders at a step. */
export interface SenderLoad {
  /** The browser's estimate of the uplink in bit/s; undefined if unknown. */
  available: number | undefined;
  /** The highest rates of all video that this page sends at present, in sum, in bit/s. */
  needed: number;
  /** The number of qualities that are wanted and sent at present. */
  sent: number;
  /** The reason why the highest of them is worse than requested: "none", "cpu", "bandwidth" or "other". */
  limit: string;
}

/** The milliseconds for which a limit must last: the browser's estimate begins low, and grows within seconds. */
const tolerated = 4000;
/** The time without attempts after a reduction; it doubles after every failed attempt. */
const firstPatience = 8000;
const longestPatience = 60_000;
/** An attempt that has lasted for this time has succeeded. */
const proven = 10_000;

export class SenderBudget {
  /** Qualities below this one are sent. */
  qualities: number;
  /** The cause of the last reduction. */
  cause: "cpu" | "bandwidth" | undefined;
  private limitedSince: number | undefined;
  private reducedAt = 0;
  private triedAt: number | undefined;
  private patience = firstPatience;

  constructor(private readonly all: number) {
    this.qualities = all;
  }

  /** Reports whether the number of qualities has changed. */
  step(now: number, { available, needed, sent, limit }: SenderLoad): boolean {
    const narrow = limit === "bandwidth" && available !== undefined && available < needed;
    if (sent > 1 && (narrow || limit === "cpu")) {
      this.limitedSince ??= now;
      if (now - this.limitedSince >= tolerated) {
        this.reduce(now, sent, limit === "cpu" ? "cpu" : "bandwidth");
        return true;
      }
      return false;
    }
    this.limitedSince = undefined;
    return this.raise(now);
  }

  private reduce(now: number, sent: number, cause: "cpu" | "bandwidth"): void {
    if (this.triedAt !== undefined) {
      this.patience = Math.min(2 * this.patience, longestPatience);
      this.triedAt = undefined;
    }
    // Qualities that no receiver takes are not sent: those above the sent ones are given up, too.
    this.qualities = Math.min(this.qualities, sent) - 1;
    this.cause = cause;
    this.reducedAt = now;
    this.limitedSince = undefined;
  }

  private raise(now: number): boolean {
    if (this.triedAt !== undefined && now - this.triedAt >= proven) {
      this.triedAt = undefined;
      this.patience = firstPatience;
    }
    if (this.qualities === this.all || this.triedAt !== undefined || now - this.reducedAt < this.patience) {
      return false;
    }
    this.triedAt = now;
    this.qualities++;
    if (this.qualities === this.all) {
      this.cause = undefined;
    }
    return true;
  }
}
