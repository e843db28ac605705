// The present content of the connection's lines: assignments and the sent qualities, by mid.

import type { Assignment, Reason, SlotQuality, TileRef } from "../signal/messages";

export interface Slot {
  mid: string;
  generation: number;
  track: TileRef | undefined;
  /** The only quality of the slot, in mode descriptions. */
  description: number | undefined;
  /** The quality being sent: -1 is off; undefined before the server's first message about the slot. */
  quality: number | undefined;
  reason: Reason | undefined;
  /**
   * The earliest time at which a frame of the assignment can arrive, in milliseconds since 1970: earlier
   * frames belong to the previous assignment.
   */
  since: number;
  dropped: number;
}

export class SlotTable {
  private readonly byMid = new Map<string, Slot>();

  /**
   * Stores assignments, and returns those that must be acknowledged.
   * @param guard is the time after an acknowledgement in which no frame of the assignment can arrive
   */
  assign(assignments: readonly Assignment[], now: number, guard = 0): { mid: string; generation: number }[] {
    const news: { mid: string; generation: number }[] = [];
    for (const { mid, generation, track, quality: description } of assignments) {
      const before = this.byMid.get(mid);
      if (before && before.generation >= generation) {
        // The server repeats assignments to a client that returns, but does not wait for
        // acknowledgements of assignments that it knows were acknowledged.
        if (before.generation === generation && before.track) {
          news.push({ mid, generation });
        }
        continue;
      }
      this.byMid.set(mid, { mid, generation, track, description, quality: undefined, reason: undefined, since: before ? now + guard : now, dropped: 0 });
      if (track) {
        news.push({ mid, generation });
      }
    }
    return news;
  }

  sending(slots: readonly SlotQuality[]): void {
    for (const { mid, generation, quality, reason } of slots) {
      const slot = this.byMid.get(mid);
      if (slot?.generation === generation) {
        slot.quality = quality;
        slot.reason = reason;
      }
    }
  }

  delivery(dropped: readonly { mid: string; generation: number; frames: number }[]): void {
    for (const { mid, generation, frames } of dropped) {
      const slot = this.byMid.get(mid);
      if (slot?.generation === generation) {
        slot.dropped += frames;
      }
    }
  }

  get(mid: string): Slot | undefined {
    return this.byMid.get(mid);
  }

  [Symbol.iterator](): IterableIterator<Slot> {
    return this.byMid.values();
  }

  clear(): void {
    this.byMid.clear();
  }
}
