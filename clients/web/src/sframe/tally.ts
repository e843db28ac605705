// Counts of encrypted frames by participant.

import { type Reason, reasons } from "./opener";
import type { Counts } from "./traffic";

/** The most participants with counts, the most recent ones. */
const most = 1024;

export function noCounts(): Counts {
  return Object.fromEntries(["opened", ...reasons].map((name) => [name, 0])) as Counts;
}

export class Tally {
  private readonly all = new Map<string, Counts>();
  private readonly changed = new Set<string>();

  count(participant: string, result: "opened" | Reason): void {
    const counts = this.all.get(participant) ?? noCounts();
    counts[result]++;
    this.all.delete(participant);
    this.all.set(participant, counts);
    this.changed.add(participant);
    if (this.all.size > most) {
      this.all.delete(this.all.keys().next().value!);
    }
  }

  /** Returns the counts of the participants with changes since the last call. */
  take(): [string, Counts][] {
    const changes = [...this.changed].flatMap((who): [string, Counts][] => {
      const counts = this.all.get(who);
      return counts ? [[who, { ...counts }]] : [];
    });
    this.changed.clear();
    return changes;
  }
}
