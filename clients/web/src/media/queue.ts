// Frames that wait for a decoder: of each line the newest only, lines in turn.

export class NewestQueue<T> {
  private readonly waiting = new Map<string, { item: T; skipped: number }>();

  /** Puts an item in place of one of the same line that still waits. */
  put(line: string, item: T): void {
    const before = this.waiting.get(line);
    if (before) {
      before.item = item;
      before.skipped++;
      return;
    }
    this.waiting.set(line, { item, skipped: 0 });
  }

  /** Takes the item of the line that has waited longest, and how many of its line it took the place of. */
  take(): { line: string; item: T; skipped: number } | undefined {
    for (const [line, { item, skipped }] of this.waiting) {
      this.waiting.delete(line);
      return { line, item, skipped };
    }
    return undefined;
  }
}
