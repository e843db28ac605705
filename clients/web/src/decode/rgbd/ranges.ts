// The binary range decoder of "rgbd", as in LZMA (Martin, "Range encoding", 1979). All numbers are
// unsigned integers of 32 bits.

import { fastRate, Probabilities, rareDecisions, slowRates } from "./probabilities";

/** The lower bound of the range between two decisions. */
export const leastRange = 2 ** 24;

/** The places in the state of the decoder, which is an array since the numbers exceed small integers. */
export const width = 0;
export const code = 1;

/**
 * The methods are for few decisions. Loops over many keep a copy of the fields in local variables (see
 * DepthDecoder).
 */
export class RangeDecoder {
  readonly probabilities = new Probabilities();
  readonly state = new Uint32Array(2);
  data: Uint8Array = new Uint8Array(0);
  /** The index of the next byte; bytes behind the data are 0. */
  at = 0;

  /** Starts to decode data, with probabilities as at the start of a tile. */
  begin(data: Uint8Array): void {
    this.probabilities.reset();
    this.data = data;
    this.at = 4;
    this.state[width] = 0xffffffff;
    this.state[code] = ((data[0]! << 24) | (data[1]! << 16) | (data[2]! << 8) | data[3]!) >>> 0;
  }

  /** Reports whether bytes behind the data, which are 0, were read. */
  get beyond(): boolean {
    return this.at > this.data.length;
  }

  /** The number of bytes that were not read. */
  get rest(): number {
    return this.data.length - this.at;
  }

  /** Decodes a decision by its probability, which adapts. */
  bit(p: number): number {
    const { state } = this;
    const { fast, slow, seen } = this.probabilities;
    const [f, s, n] = [fast[p]!, slow[p]!, seen[p]!];
    const rate = slowRates[n]!;
    if (n < rareDecisions) {
      seen[p] = n + 1;
    }
    let range = state[width]!;
    let value = state[code]!;
    const bound = Math.imul(range >>> 16, (f + s) >>> 1) >>> 0;
    let bit = 0;
    if (value < bound) {
      range = bound;
      fast[p] = f + ((65535 - f) >> fastRate);
      slow[p] = s + ((65535 - s) >> rate);
    } else {
      value -= bound;
      range -= bound;
      fast[p] = f - (f >> fastRate);
      slow[p] = s - (s >> rate);
      bit = 1;
    }
    while (range < leastRange) {
      range = (range << 8) >>> 0;
      value = ((value << 8) | this.data[this.at++]!) >>> 0;
    }
    state[width] = range;
    state[code] = value;
    return bit;
  }

  /** Decodes decisions that have a probability of a half, the highest first. */
  even(count: number): number {
    const { state } = this;
    let range = state[width]!;
    let value = state[code]!;
    let bits = 0;
    for (let i = 0; i < count; i++) {
      range >>>= 1;
      bits <<= 1;
      if (value >= range) {
        value -= range;
        bits |= 1;
      }
      while (range < leastRange) {
        range = (range << 8) >>> 0;
        value = ((value << 8) | this.data[this.at++]!) >>> 0;
      }
    }
    state[width] = range;
    state[code] = value;
    return bits;
  }
}
