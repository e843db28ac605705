// The binary range encoder of "rgbd", as in LZMA (Martin, "Range encoding", 1979), with a carry.

import { fastRate, Probabilities, rareDecisions, slowRates } from "../../decode/rgbd/probabilities";
import { leastRange } from "../../decode/rgbd/ranges";

/** The last byte that a carry may change is followed by bytes of 255 only. */
const waiting = 0xff;
/** The number of bytes of the state at the end. */
const stateBytes = 5;

export class RangeEncoder {
  private readonly probabilities = new Probabilities();
  /** The lower end of the interval, below 2^33. */
  private low = 0;
  private width = 0;
  /** The last byte, and the number of bytes that a carry may still change: the last byte and those of 255 behind it. */
  private cache = 0;
  private pending = 0;
  private out = new Uint8Array(1 << 12);
  private length = 0;

  /** Starts with probabilities as at the start of a tile. */
  begin(): void {
    this.probabilities.reset();
    this.low = 0;
    this.width = 0xffffffff;
    this.pending = 0;
    this.length = 0;
  }

  /** Encodes a decision by its probability, which adapts. */
  bit(p: number, bit: number): void {
    const { fast, slow, seen } = this.probabilities;
    const [f, s, n] = [fast[p]!, slow[p]!, seen[p]!];
    const rate = slowRates[n]!;
    if (n < rareDecisions) {
      seen[p] = n + 1;
    }
    const bound = Math.imul(this.width >>> 16, (f + s) >>> 1) >>> 0;
    if (bit === 0) {
      this.width = bound;
      fast[p] = f + ((65535 - f) >> fastRate);
      slow[p] = s + ((65535 - s) >> rate);
    } else {
      this.low += bound;
      this.width -= bound;
      fast[p] = f - (f >> fastRate);
      slow[p] = s - (s >> rate);
    }
    this.normalise();
  }

  /** Encodes the lowest bits of a value with a probability of a half, the highest first. */
  even(value: number, count: number): void {
    for (let i = count - 1; i >= 0; i--) {
      this.width >>>= 1;
      if (((value >>> i) & 1) !== 0) {
        this.low += this.width;
      }
      this.normalise();
    }
  }

  private normalise(): void {
    while (this.width < leastRange) {
      this.width = (this.width << 8) >>> 0;
      this.shift();
    }
  }

  /** Moves the highest byte of low out. */
  private shift(): void {
    if (this.pending === 0 || this.low < 0xff000000 || this.low > 0xffffffff) {
      const carry = this.low > 0xffffffff ? 1 : 0;
      for (; this.pending > 0; this.pending--) {
        this.append(this.cache + carry);
        this.cache = waiting;
      }
      this.cache = this.low >>> 24 & 0xff;
    }
    this.pending++;
    this.low = ((this.low & 0x00ffffff) << 8) >>> 0;
  }

  private append(byte: number): void {
    if (this.length === this.out.length) {
      const larger = new Uint8Array(2 * this.out.length);
      larger.set(this.out);
      this.out = larger;
    }
    this.out[this.length++] = byte;
  }

  /** Ends, and returns all bytes; they are valid until the next start. A decoder reads exactly these. */
  end(): Uint8Array {
    for (let i = 0; i < stateBytes; i++) {
      this.shift();
    }
    return this.out.subarray(0, this.length);
  }
}
