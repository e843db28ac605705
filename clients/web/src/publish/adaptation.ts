// Decides how much of the wanted data a publisher sends: as many qualities as its uplink can carry,
// from the lowest on, and fewer points of the lowest if even that exceeds it. The logic is pure:
// each step has the events and the time as arguments.

/** The events since the last step. */
export interface Observation {
  /** The present bit rate of each quality in bit/s, of all tiles together. */
  rates: readonly number[];
  /** The numbers of frames sent, and of frames replaced by newer ones. */
  sent: number;
  dropped: number;
  /** The measured capacity of the uplink in bit/s, if it limited the output. */
  carried: number | undefined;
  /** The bytes already in transmission, which delay later data. */
  queued: number;
  /** The milliseconds for which the data has been overdue without any progress. */
  stalled: number;
}

/** The result of a step. */
export interface Decision {
  /** Qualities below this one are encoded. */
  qualities: number;
  /** The share of the points of these qualities. */
  share: number;
}

/**
 * The interval between steps in milliseconds. Each step covers the events since the previous one.
 */
export const stepInterval = 500;
/**
 * The tolerated share of dropped frames; more means that the uplink is too narrow. One in twenty
 * can result from a short disturbance.
 */
const tolerated = 0.05;
/** The used share of the measured rate, so that queued data drains. */
const used = 0.85;
/**
 * The time in milliseconds without attempts after a reduction; it doubles after every failed
 * attempt.
 */
const firstPatience = 2000;
const longestPatience = 30_000;
/** An attempt that has lasted for this time has succeeded. */
const proven = 3000;
const leastShare = 0.1;
/** The growth of the number of points per attempt: from the minimum to all in six attempts. */
const growth = 1.5;
/**
 * If data has been overdue for this time in milliseconds, only the lowest quality is worth sending.
 * SCTP retransmits losses before new data, sometimes after 0.8 s and repeatedly; one or two of
 * those delays are common.
 */
export const hopeless = 2000;
/** After that, the rate is measured again for this time. */
const fresh = 2000;

export class Adaptation {
  private decision: Decision;
  private patience = firstPatience;
  private reducedAt = -Infinity;
  /**
   * The time from which on steps exclude data that was in transmission or queued at the last
   * reduction: earlier steps contain no information about its effect.
   */
  private settled = -Infinity;
  private triedAt: number | undefined;
  /** The capacity of the uplink when it was last too narrow, in bit/s; 0 if unknown. */
  estimate = 0;

  constructor(private readonly qualities: number) {
    this.decision = { qualities, share: 1 };
  }

  get current(): Decision {
    return this.decision;
  }

  /** Returns what to send from now on. */
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

  /**
   * Nothing is leaving, and the later rate is unknown: the first data after that is the lowest
   * quality, then more is tried step by step.
   */
  private fallBack(now: number): void {
    this.failTry();
    this.reducedAt = now;
    this.settled = now + fresh;
    if (this.decision.qualities > 1) {
      this.estimate = 0;
      this.decision = { qualities: 1, share: this.decision.share };
    }
  }

  /** The present attempt, if any, has failed. */
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
      // On a page that is itself delayed, frames are also replaced by newer ones, independent of
      // the uplink.
      return;
    }
    this.estimate = carried;
    this.failTry();
    this.reducedAt = now;
    this.settled = now + (8000 * queued) / carried + stepInterval;
    if (kept === qualities) {
      // Frames were dropped although all should fit: the rates are older than the present demand.
      // One step down is enough.
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
