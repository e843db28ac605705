// Recent statistics of each line: rates, frames, delays. All of them cover the last seconds, so
// that they follow changes.

import type { Slot } from "../media/slots";
import type { DecodedFrame } from "../media/traffic";

/** The period of statistics, in milliseconds. */
const span = 2000;

interface Sample {
  at: number;
  quality: number;
  bytes: number;
  network: number;
  wait: number;
  decode: number;
  shown: number;
}

export interface Figures {
  quality: number;
  points: number;
  fps: number;
  bps: number;
  /**
   * Medians in milliseconds: capture to arrival, waiting for the decoder, decoding, decoded to
   * shown; NaN if unknown.
   */
  network: number;
  wait: number;
  decode: number;
  shown: number;
}

class Meter {
  samples: Sample[] = [];
  quality = -1;
  points = 0;
  frames = 0;
  skipped = 0;
  failed = 0;
  /** The number of frames since the first that are not complete, by their numbers. */
  missing = 0;
  newest: number | undefined;
}

export class Meters {
  private readonly byMid = new Map<string, Meter>();
  /** The number of lines with frames that reach a worker. */
  opened = 0;
  /** All frames since the page was loaded. */
  readonly total = { decoded: 0, skipped: 0, failed: 0, missing: 0, bytes: 0 };

  decoded(slot: Slot, f: DecodedFrame, ahead: number): void {
    const m = this.meter(slot.mid);
    m.quality = f.quality;
    m.points = f.points.count;
    m.frames++;
    m.skipped += f.skipped;
    if (m.newest !== undefined) {
      // Frame numbers wrap around at 32 bits. Skipped frames may have been missing before.
      const between = Math.max(0, ((f.number - m.newest) | 0) - 1);
      const before = m.missing;
      m.missing = Math.max(0, before + between - f.skipped);
      this.total.missing += m.missing - before;
    }
    m.newest = f.number;
    this.total.decoded++;
    this.total.skipped += f.skipped;
    this.total.bytes += f.bytes;
    m.samples.push({
      at: f.decoded, quality: f.quality, bytes: f.bytes, network: f.received + ahead - f.captured, wait: f.decodeBegan - f.received, decode: f.decoded - f.decodeBegan, shown: NaN,
    });
    this.prune(m, f.decoded);
  }

  /**
   * Records that the newest frame of a line was shown, with the milliseconds since its decoding.
   */
  shown(mid: string, after: number): void {
    const last = this.byMid.get(mid)?.samples.at(-1);
    if (last) {
      last.shown = after;
    }
  }

  failed(mid: string): void {
    this.total.failed++;
    this.meter(mid).failed++;
  }

  forget(mid: string): void {
    this.byMid.delete(mid);
  }

  /** A line has another track: the statistics begin again, or are those of another line with the same track. */
  continue(mid: string, other: string | undefined): void {
    const same = other === undefined ? undefined : this.byMid.get(other);
    if (same) {
      this.byMid.set(mid, same);
    } else {
      this.byMid.delete(mid);
    }
  }

  figures(mid: string, now: number): Figures | undefined {
    const m = this.byMid.get(mid);
    if (!m) {
      return undefined;
    }
    this.prune(m, now);
    const median = (pick: (s: Sample) => number): number => {
      const sorted = m.samples.map(pick).filter(Number.isFinite).sort((a, b) => a - b);
      return sorted[Math.floor(sorted.length / 2)] ?? NaN;
    };
    const bytes = m.samples.reduce((sum, s) => sum + s.bytes, 0);
    return {
      quality: m.quality,
      points: m.points,
      fps: (m.samples.length * 1000) / span,
      bps: (bytes * 8 * 1000) / span,
      network: median((s) => s.network),
      wait: median((s) => s.wait),
      decode: median((s) => s.decode),
      shown: median((s) => s.shown),
    };
  }

  /** Returns the bytes that arrived on a line in the last milliseconds, at most two seconds. */
  arrived(mid: string, last: number, now: number): number {
    return (this.byMid.get(mid)?.samples ?? []).filter((s) => s.at > now - last).reduce((sum, s) => sum + s.bytes, 0);
  }

  /**
   * Returns the arrival of the first frame of at least that quality, among those decoded since an
   * instant within the last two seconds.
   */
  first(mid: string, since: number, quality: number): number | undefined {
    const sample = this.byMid.get(mid)?.samples.find((s) => s.at >= since && s.quality >= quality);
    return sample && sample.at - sample.decode - sample.wait;
  }

  private meter(mid: string): Meter {
    let m = this.byMid.get(mid);
    if (!m) {
      m = new Meter();
      this.byMid.set(mid, m);
    }
    return m;
  }

  private prune(m: Meter, now: number): void {
    const first = m.samples.findIndex((s) => s.at >= now - span);
    m.samples.splice(0, first < 0 ? m.samples.length : first);
  }
}
