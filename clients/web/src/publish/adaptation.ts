// How much a publisher sends of what is wanted: as many qualities as its uplink carries, from the lowest on, and fewer points of the lowest where not even that fits.
// It is pure: it is stepped with what happened and when.

/** What happened since the last step. */
export interface Observation {
  /** Bit/s that each quality takes as it is encoded now, of all tiles together. */
  rates: readonly number[];
  /** Frames that were sent, and that were dropped for newer ones. */
  sent: number;
  dropped: number;
  /** What the uplink carried in bit/s, where it was what held frames up. */
  carried: number | undefined;
  /** Bytes that are on their way already, and hold up what comes next. */
  queued: number;
  /** For how many milliseconds they have been overdue, none of them having left. */
  stalled: number;
}

/** What is to be sent. */
export interface Decision {
  /** Qualities below this one are encoded. */
  qualities: number;
  /** The share of their points. */
  share: number;
}

/** Steps are so far apart, in milliseconds: each is told of what happened since the one before. */
export const stepInterval = 500;
/** The share of frames that may be dropped before that counts as an uplink that is too narrow: one in twenty comes of a moment's trouble. */
const tolerated = 0.05;
/** The share of the measured rate that is used, so that what has queued up drains. */
const used = 0.85;
/** After being reduced, nothing is tried for so many milliseconds; twice as long after every try that failed. */
const firstPatience = 2000;
const longestPatience = 30_000;
/** A try that has stood for so long was right. */
const proven = 3000;
const leastShare = 0.1;
/** How fast points come back: from the least to all in six tries. */
const growth = 1.5;
/**
 * Where something has been overdue for so many milliseconds, nothing is worth sending but the lowest quality. SCTP repeats what was lost before anything new, some of it after 0.8 s
 * and more than once: one or two of those are everyday.
 */
export const hopeless = 2000;
/** After that the rate is measured anew for so long. */
const fresh = 2000;

export class Adaptation {
  private decision: Decision;
  private patience = firstPatience;
  private reducedAt = -Infinity;
  /** From when on steps are told of nothing that was on its way at the last reduction, nor of what waited for that: before, they say nothing of what it has brought. */
  private settled = -Infinity;
  private triedAt: number | undefined;
  /** What the uplink carried when it was last too narrow, in bit/s; 0 where that is not known. */
  estimate = 0;

  constructor(private readonly qualities: number) {
    this.decision = { qualities, share: 1 };
  }

  get current(): Decision {
    return this.decision;
  }

  /** Tells whether there is something to send differently, and how. */
  step(now: number, { rates, sent, dropped, carried, queued, stalled }: Observation): Decision {
    if (stalled >= hopeless) {
      this.fallBack(now);
    } else if (dropped > tolerated * (dropped + sent)) {
      if (carried && carried > 0 && now >= this.settled) {
        this.reduce(now, rates, carried, queued);
      }
    } else if (sent > 0) {
      this.raise(now);
    }
    return this.decision;
  }

  /** Nothing leaves, and how much will is not known: once something does, that is the lowest quality, and more is tried step by step. */
  private fallBack(now: number): void {
    this.failTry();
    this.reducedAt = now;
    this.settled = now + fresh;
    if (this.decision.qualities > 1) {
      this.estimate = 0;
      this.decision = { qualities: 1, share: this.decision.share };
    }
  }

  /** Where something was being tried, it was too much. */
  private failTry(): void {
    if (this.triedAt !== undefined) {
      this.patience = Math.min(2 * this.patience, longestPatience);
      this.triedAt = undefined;
    }
  }

  private reduce(now: number, rates: readonly number[], carried: number, queued: number): void {
    const room = used * carried;
    let kept = 0;
    let sum = 0;
    while (kept < this.decision.qualities && sum + (rates[kept] ?? 0) <= room) {
      sum += rates[kept++] ?? 0;
    }
    const { qualities, share } = this.decision;
    if (kept === qualities && sum <= room / 2) {
      // A page that is held up itself has frames give way to newer ones, too, whatever its uplink carries.
      return;
    }
    this.estimate = carried;
    this.failTry();
    this.reducedAt = now;
    this.settled = now + (8000 * queued) / carried + stepInterval;
    if (kept === qualities) {
      // Something was dropped though all of it should fit: rates are older than what is wanted now. One step down is a step.
      kept--;
    }
    if (kept > 0) {
      this.decision = { qualities: kept, share };
      return;
    }
    const fits = rates[0] ? room / rates[0] : 1;
    this.decision = { qualities: 1, share: Math.max(leastShare, share * Math.min(fits, 1 / growth)) };
  }

  private raise(now: number): void {
    if (this.triedAt !== undefined && now - this.triedAt >= proven) {
      this.triedAt = undefined;
      this.patience = firstPatience;
    }
    const { qualities, share } = this.decision;
    if ((qualities === this.qualities && share === 1) || this.triedAt !== undefined || now - this.reducedAt < this.patience) {
      return;
    }
    this.triedAt = now;
    this.decision = share < 1 ? { qualities, share: Math.min(1, share * growth) } : { qualities: qualities + 1, share };
  }
}
