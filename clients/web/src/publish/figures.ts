// Statistics for the publishing user: the data encoded, sent and dropped in the last seconds.

import type { Decision } from "./adaptation";
import type { OutgoingFrame } from "./chunks";
import type { EncoderReport, Plan } from "./traffic";
import { perSecond, Recent } from "./window";

/** The state of one quality. */
export interface QualityState {
  name: string;
  /** The number of tiles with a receiver, and the number of encoded ones. */
  wanted: number;
  taken: number;
  fps: number;
  bps: number;
  /** The points of a frame, of all tiles together. */
  points: number;
  /** The encoding time of a capture, of all tiles together. */
  milliseconds: number;
}

export interface State {
  /** Whether there are points yet. */
  ready: boolean;
  /** Whether the server has the publication and its channel is open. */
  live: boolean;
  qualities: QualityState[];
  /**
   * The captures per second that were made, and those that were skipped because the encoders were
   * busy.
   */
  fps: number;
  skipped: number;
  bps: number;
  /** Frames replaced by newer ones, per second. */
  dropped: number;
  /** The qualities that exceed the uplink, and the remaining share of points of the others. */
  givenUp: string[];
  share: number;
  /**
   * The measured capacity of the uplink in bit/s, from times when it limited the output; 0 if it
   * never did.
   */
  carried: number;
}

/** Further data of the publisher. */
export interface Circumstances {
  live: boolean;
  wanted: readonly (readonly number[])[];
  taken: readonly (readonly number[])[];
  decision: Decision;
  carried: number;
}

type Encoded = Extract<EncoderReport, { type: "encoded" }>;

export class Figures {
  ready = false;
  /** The totals of all frames since the start. */
  readonly total = { encoded: 0, sent: 0, dropped: 0 };
  private readonly captures = new Recent<true>();
  private readonly busy = new Recent<true>();
  private readonly drops = new Recent<number>();
  private readonly made: Recent<Encoded & { bytes: number }>[];
  private readonly gone: Recent<{ number: number; bytes: number }>[];

  constructor(private readonly plan: Plan) {
    this.made = plan.qualities.map(() => new Recent());
    this.gone = plan.qualities.map(() => new Recent());
  }

  captured(at: number): void {
    this.captures.add(at, true);
  }

  skipped(at: number): void {
    this.busy.add(at, true);
  }

  encoded(frame: Encoded, at: number): void {
    this.total.encoded++;
    this.made[frame.quality]?.add(at, { ...frame, data: nothing, bytes: frame.data.length });
  }

  sent(frame: OutgoingFrame, at: number): void {
    this.total.sent++;
    this.gone[frame.quality]?.add(at, { number: frame.number, bytes: frame.data.length });
  }

  dropped(count: number, at: number): void {
    this.total.dropped += count;
    this.drops.add(at, count);
  }

  /** Returns the present bit rate of each quality as encoded, in bit/s. */
  encodedRates(at: number): number[] {
    return this.made.map((frames) => perSecond(8 * frames.since(at).reduce((sum, f) => sum + f.bytes, 0)));
  }

  state(at: number, { live, wanted, taken, decision, carried }: Circumstances): State {
    const qualities = this.plan.qualities.map(({ name }, q): QualityState => {
      const sent = this.gone[q]!.since(at);
      const made = this.made[q]!.since(at);
      const each = (pick: (f: Encoded) => number): number => sumOfMeans(made, pick);
      return {
        name,
        wanted: wanted.filter((t) => t.includes(q)).length,
        taken: taken.filter((t) => t.includes(q)).length,
        fps: perSecond(new Set(sent.map((f) => f.number)).size),
        bps: perSecond(8 * sent.reduce((sum, f) => sum + f.bytes, 0)),
        points: Math.round(each((f) => f.points)),
        milliseconds: each((f) => f.milliseconds),
      };
    });
    return {
      ready: this.ready,
      live,
      qualities,
      fps: perSecond(this.captures.since(at).length),
      skipped: perSecond(this.busy.since(at).length),
      bps: qualities.reduce((sum, q) => sum + q.bps, 0),
      dropped: perSecond(this.drops.since(at).reduce((sum, n) => sum + n, 0)),
      givenUp: this.plan.qualities.slice(decision.qualities).map((q) => q.name),
      share: decision.share,
      carried,
    };
  }
}

const nothing = new Uint8Array(0);

/** Returns the sum over all tiles of their means: the latest capture may be incomplete. */
function sumOfMeans(frames: readonly Encoded[], pick: (f: Encoded) => number): number {
  const tiles = new Map<number, { sum: number; count: number }>();
  for (const frame of frames) {
    const tile = tiles.get(frame.tile) ?? { sum: 0, count: 0 };
    tiles.set(frame.tile, { sum: tile.sum + pick(frame), count: tile.count + 1 });
  }
  return [...tiles.values()].reduce((all, { sum, count }) => all + sum / count, 0);
}
