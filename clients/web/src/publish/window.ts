// Sums over the last seconds.

/** The period of the sums, in milliseconds. */
export const span = 2000;

/** Recent events with their times. */
export class Recent<T> {
  private items: { at: number; item: T }[] = [];

  add(at: number, item: T): void {
    this.items.push({ at, item });
  }

  /** Returns the events within the last two seconds. */
  since(now: number): T[] {
    const first = this.items.findIndex(({ at }) => at >= now - span);
    this.items.splice(0, first < 0 ? this.items.length : first);
    return this.items.map(({ item }) => item);
  }
}

/** Converts a sum over two seconds to a rate per second. */
export function perSecond(sum: number): number {
  return (sum * 1000) / span;
}
