// Sums over the last seconds.

/** How long sums look back, in milliseconds. */
export const span = 2000;

/** What happened lately, and when. */
export class Recent<T> {
  private items: { at: number; item: T }[] = [];

  add(at: number, item: T): void {
    this.items.push({ at, item });
  }

  /** What happened within the last two seconds. */
  since(now: number): T[] {
    const first = this.items.findIndex(({ at }) => at >= now - span);
    this.items.splice(0, first < 0 ? this.items.length : first);
    return this.items.map(({ item }) => item);
  }
}

/** A sum over two seconds, as a rate per second. */
export function perSecond(sum: number): number {
  return (sum * 1000) / span;
}
