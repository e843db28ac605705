import { DecodeError } from "./points";

const values = 256;
const tableBytes = 4 * (values + 1);
/** The size of the range coder's state. */
const codeBytes = 4;
/** The limits of the range coder (D. Subbotin's, without carries), with 32 bits. */
const top = 2 ** 24;
const bottom = 2 ** 16;

/** Decodes the range-coded sections of "cwi1"; see package pkg/codec/cwi1. */
export class Section {
  private data = new Uint8Array(0);
  private at = 0;
  private low = 0;
  private width = 0;
  private code = 0;
  private readonly cumulative = new Uint32Array(values + 1);
  /** The value of each frequency below the sum. */
  private readonly valueOf = new Uint8Array(bottom);

  constructor(private readonly codec: string) {}

  /** Starts a section at the start of the data. */
  start(data: Uint8Array): void {
    if (data.length < tableBytes + codeBytes) {
      throw new DecodeError(`${this.codec}: a section of ${data.length} bytes, expected at least ${tableBytes + codeBytes}`);
    }
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    for (let i = 0; i <= values; i++) {
      const frequency = view.getUint32(4 * i, true);
      const before = i === 0 ? -1 : this.cumulative[i - 1]!;
      if ((i === 0 && frequency !== 0) || frequency <= before || frequency >= bottom) {
        throw new DecodeError(`${this.codec}: cumulative frequency ${i} is ${frequency}, expected ascending numbers from 0 to ${bottom - 1}`);
      }
      this.cumulative[i] = frequency;
      if (i > 0) {
        this.valueOf.fill(i - 1, before, frequency);
      }
    }
    this.low = 0;
    this.width = 0xffffffff;
    this.code = view.getUint32(tableBytes);
    this.data = data as Uint8Array<ArrayBuffer>;
    this.at = tableBytes + codeBytes;
  }

  /** Decodes a byte. */
  next(): number {
    const sum = this.cumulative[values]!;
    let width = Math.floor(this.width / sum);
    const frequency = Math.floor(((this.code - this.low) >>> 0) / width);
    if (frequency >= sum) {
      throw new DecodeError(`${this.codec}: frequency is ${frequency}, expected at most ${sum - 1}`);
    }
    const value = this.valueOf[frequency]!;
    const begin = this.cumulative[value]!;
    let low = (this.low + begin * width) >>> 0;
    width *= this.cumulative[value + 1]! - begin;
    for (;;) {
      if (((low ^ (low + width)) >>> 0) >= top) {
        if (width >= bottom) {
          break;
        }
        // The width ends at the next multiple of bottom, so that the coder needs no carries.
        width = -low & (bottom - 1);
      }
      if (this.at === this.data.length) {
        throw new DecodeError(`${this.codec}: a section ends early`);
      }
      this.code = ((this.code << 8) | this.data[this.at++]!) >>> 0;
      low = (low << 8) >>> 0;
      width = (width << 8) >>> 0;
    }
    this.low = low;
    this.width = width;
    return value;
  }

  /** The data behind the section. */
  get rest(): Uint8Array {
    return this.data.subarray(this.at);
  }
}
