// The lines with pictures of webcams and screens: which line carries which publication, and the
// recent statistics of each.

import type { LineStatistics, PictureStatistics } from "../media/connection";
import type { TileRef } from "../signal/messages";

/** The statistics of a line over the time since the previous ones. */
export interface PictureFigures extends PictureStatistics {
  bps: number;
}

interface Reading {
  at: number;
  bytes: number;
  bps: number;
}

/**
 * The least time between two readings for a rate, in milliseconds: the statistics of browsers are
 * refreshed less often.
 */
const leastSpan = 900;

export class PictureLines {
  /** The track of each slot. It exists from the answer to the offer on. */
  private readonly tracks = new Map<string, MediaStreamTrack>();
  private readonly carried = new Map<string, TileRef>();
  private readonly readings = new Map<string, Reading>();

  /**
   * @param show is called with the track of a publication, and with undefined when the publication
   * is no longer received
   */
  constructor(private readonly show: (ref: TileRef, track: MediaStreamTrack | undefined) => void) {}

  /** Adds the track of a slot. A new connection has new tracks on lines of the same names. */
  line(mid: string, track: MediaStreamTrack): void {
    this.tracks.set(mid, track);
    const ref = this.carried.get(mid);
    if (ref) {
      this.show(ref, track);
    }
  }

  /** Sets the publication of a slot; undefined if the slot carries none, or frames of points. */
  carry(mid: string, ref: TileRef | undefined): void {
    const before = this.carried.get(mid);
    if (before && before.participant === ref?.participant && before.publication === ref.publication) {
      return;
    }
    this.readings.delete(mid);
    this.carried.delete(mid);
    // The publication may have moved to another line, which has begun before this one ends.
    if (before && ![...this.carried.values()].some((c) => c.participant === before.participant && c.publication === before.publication)) {
      this.show(before, undefined);
    }
    if (ref) {
      this.carried.set(mid, ref);
      const track = this.tracks.get(mid);
      if (track) {
        this.show(ref, track);
      }
    }
  }

  /** A publication has ended. Another one of the same name may follow on the same line. */
  forget(participant: string, publication: string): void {
    for (const [mid, ref] of this.carried) {
      if (ref.participant === participant && ref.publication === publication) {
        this.carry(mid, undefined);
      }
    }
  }

  /** A line has ended with its connection, while others continue. */
  end(mid: string): void {
    this.tracks.delete(mid);
    this.carry(mid, undefined);
  }

  /** All lines have ended with their connection. */
  clear(): void {
    this.tracks.clear();
    for (const mid of [...this.carried.keys()]) {
      this.carry(mid, undefined);
    }
  }

  /** Returns the statistics of a line; undefined if no picture has been decoded. */
  figures(mid: string, line: LineStatistics | undefined, now: number): PictureFigures | undefined {
    if (!line?.pictures || !this.carried.has(mid)) {
      return undefined;
    }
    const before = this.readings.get(mid);
    if (!before) {
      this.readings.set(mid, { at: now, bytes: line.bytes, bps: 0 });
    } else if (now - before.at >= leastSpan) {
      this.readings.set(mid, { at: now, bytes: line.bytes, bps: (8000 * Math.max(0, line.bytes - before.bytes)) / (now - before.at) });
    }
    return { ...line.pictures, bps: this.readings.get(mid)!.bps };
  }
}
