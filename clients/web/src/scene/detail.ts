// The choice between the full picture and a lighter one, which computers without a graphics card need.

/** Pictures that take longer than this on average, in milliseconds, are drawn lighter. */
const slow = 45;
/** The number of pictures after which an average is judged. */
const judged = 30;
/** Longer pauses count as this, in milliseconds: browsers stop drawing hidden pages. */
const longest = 250;

export type DetailName = "full" | "light";

export class Detail {
  private sum = 0;
  private count = 0;
  private light: boolean;

  /** @param fixed is kept whatever the time of pictures */
  constructor(private readonly fixed: DetailName | undefined) {
    this.light = fixed === "light";
  }

  get name(): DetailName {
    return this.light ? "light" : "full";
  }

  /** Adds the time since the last picture, in milliseconds. */
  add(interval: number): void {
    if (this.fixed || this.light) {
      return;
    }
    this.sum += Math.min(interval, longest);
    if (++this.count === judged) {
      this.light = this.sum / judged > slow;
      this.sum = this.count = 0;
    }
  }
}
