// Frames that wait for a decoder: only the newest of each line, with the lines in turn.

export class NewestQueue<T> {
  private readonly waiting = new Map<string, { item: T; skipped: number }>();

  /** Adds an item, and replaces a waiting one of the same line. */
  put(line: string, item: T): void {
    const before = this.waiting.get(line);
    if (before) {
      before.item = item;
      before.skipped++;
      return;
    }
    this.waiting.set(line, { item, skipped: 0 });
  }

  /**
   * Removes the item of the line that has waited longest, and returns it with the number of items
   * that it replaced.
   */
  take(): { line: string; item: T; skipped: number } | undefined {
    for (const [line, { item, skipped }] of this.waiting) {
      this.waiting.delete(line);
      return { line, item, skipped };
    }
    return undefined;
  }
}
