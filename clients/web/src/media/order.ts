// The order of the frames of a line, by their numbers. Retransmissions complete frames late, and
// the browser assembles a frame again when its packets come again, as in the server's probes.

/** The number of frames before the newest that count as late; frames before them are a restart. */
const remembered = 64;

export type Place = "newest" | "late" | "repeated";

export class FrameOrder {
  private newest: number | undefined;
  /** The numbers of the last frames. */
  private seen: number[] = [];
  private late: number[] = [];

  /** Returns the place of a frame among the frames before. Numbers wrap around at 32 bits. */
  place(number: number): Place {
    const behind = this.newest === undefined ? -1 : (this.newest - number) | 0;
    if (behind > remembered) {
      this.seen = [];
    }
    if (behind < 0 || behind > remembered) {
      this.newest = number;
    } else if (this.seen.includes(number)) {
      return "repeated";
    } else {
      this.late.push(number);
    }
    if (this.seen.push(number) > remembered) {
      this.seen.shift();
    }
    return this.newest === number ? "newest" : "late";
  }

  /** Returns the numbers of the late frames since the last call. */
  takeLate(): number[] {
    const { late } = this;
    this.late = [];
    return late;
  }
}
