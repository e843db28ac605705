// The depths of a tile of "rgbd" (docs/codec.md, "The format of rgbd").

import { DecodeError } from "../points";
import { type Grid, levelOf, mostActivity } from "./grid";
import * as model from "./probabilities";
import { code, leastRange, type RangeDecoder, width } from "./ranges";

/**
 * The state of a coded pixel for the contexts of its neighbours: bit 0 is set if the pixel has a depth,
 * bits 1 and 2 are the sign of its residual, 1 for positive and 2 for negative, and the bits above are
 * the residual's size. A pixel without a depth has the mark 0.
 */
const markDepth = 1;
const signShift = 1;
const signMask = 3;
const sizeShift = 3;

/** Decodes depths. It keeps the marks of two rows. */
export class DepthDecoder {
  /** The marks of the row and of the row above, from one pixel to the left of the row to one to the right. */
  private marks = new Int32Array(0);
  private above = new Int32Array(0);

  /**
   * Reads the depths of a grid whose mask is complete. Codes must be at most most. It ends early if the
   * data does.
   */
  decode(grid: Grid, decoder: RangeDecoder, most: number): void {
    // The row above the first has no depths. The columns at both ends are never marked.
    const size = grid.columns + 2;
    this.marks = new Int32Array(size);
    this.above = new Int32Array(size);
    let last = 0;
    // A frame must not cause work beyond its data.
    for (let y = 0; y < grid.rows && !decoder.beyond; y++) {
      [this.marks, this.above] = [this.above, this.marks];
      last = this.row(grid, grid.row(y), decoder, last, most);
    }
  }

  /**
   * Reads the depths of a row that begins at an index of the grid, and returns the last code. last is
   * the code of the pixel coded before.
   *
   * Contexts and prediction are those of Grid. The function contains RangeDecoder.bit twice, for the
   * unary code of a residual's length and for the bits behind it, and keeps the decoder's state in local
   * variables: storing the state for each decision took a quarter of the time.
   */
  private row(grid: Grid, first: number, decoder: RangeDecoder, last: number, most: number): number {
    const { columns, stride, valid, codes } = grid;
    const { marks, above } = this;
    const { data, state, probabilities: { fast, slow, seen } } = decoder;
    let { at } = decoder;
    let range = state[width]!;
    let value = state[code]!;
    let west = 0;
    let westMark = 0;
    let corner = 0;
    let cornerMark = 0;
    let north = codes[first - stride]!;
    let northMark = above[1]!;
    for (let x = 0, pixel = first; x < columns; x++, pixel++) {
      const right = codes[pixel - stride + 1]!;
      const rightMark = above[x + 2]!;
      if (valid[pixel] === 0) {
        marks[x + 1] = 0;
        west = westMark = 0;
        corner = north;
        cornerMark = northMark;
        north = right;
        northMark = rightMark;
        continue;
      }
      const depths = westMark & northMark & cornerMark & markDepth;
      const activity = 2 * ((westMark >> sizeShift) + (northMark >> sizeShift)) + (cornerMark >> sizeShift) + (rightMark >> sizeShift);
      let context = levelOf[activity < mostActivity ? activity : mostActivity]!;
      if ((depths & rightMark) === 0) {
        context += model.levels;
      }
      let p = model.zeros + model.contexts * ((north === corner ? 1 : 0) + (west === corner ? 2 : 0) + (north === right ? 4 : 0)) + context;
      let length = 0;
      for (;;) {
        const f = fast[p]!;
        const s = slow[p]!;
        const n = seen[p]!;
        const rate = model.slowRates[n]!;
        if (n < model.rareDecisions) {
          seen[p] = n + 1;
        }
        const bound = Math.imul(range >>> 16, (f + s) >>> 1) >>> 0;
        const ends = value < bound;
        if (ends) {
          range = bound;
          fast[p] = f + ((65535 - f) >> model.fastRate);
          slow[p] = s + ((65535 - s) >> rate);
        } else {
          value = (value - bound) >>> 0;
          range = (range - bound) >>> 0;
          fast[p] = f - (f >> model.fastRate);
          slow[p] = s - (s >> rate);
          length++;
        }
        while (range < leastRange) {
          range = (range << 8) >>> 0;
          value = ((value << 8) | data[at]!) >>> 0;
          at++;
        }
        if (ends || length === model.maxLength) {
          break;
        }
        p = model.lengths + context * model.maxLength + length;
      }
      let prediction: number;
      if (depths !== 0) {
        const low = west < north ? west : north;
        const high = west < north ? north : west;
        const plane = west + north - corner;
        prediction = plane < low ? low : plane > high ? high : plane;
      } else if (westMark !== 0) {
        prediction = west;
      } else if (northMark !== 0) {
        prediction = north;
      } else if (rightMark !== 0) {
        prediction = right;
      } else {
        prediction = cornerMark !== 0 ? corner : last;
      }
      let mark = markDepth;
      last = prediction;
      if (length > 0) {
        const behind = length > 3 ? 2 : length - 1;
        const mantissa = model.mantissas + 4 * (context * (model.maxLength + 1) + length);
        p = mantissa;
        let bits = 1;
        for (let i = 0; ; i++) {
          if (i === behind) {
            if (length > 3) {
              for (let rest = length - 3; rest > 0; rest--) {
                range >>>= 1;
                bits <<= 1;
                if (value >= range) {
                  value = (value - range) >>> 0;
                  bits |= 1;
                }
                while (range < leastRange) {
                  range = (range << 8) >>> 0;
                  value = ((value << 8) | data[at]!) >>> 0;
                  at++;
                }
              }
            }
            p = model.signs + 3 * ((westMark >> signShift) & signMask) + ((northMark >> signShift) & signMask);
          }
          const f = fast[p]!;
          const s = slow[p]!;
          const n = seen[p]!;
          const rate = model.slowRates[n]!;
          if (n < model.rareDecisions) {
            seen[p] = n + 1;
          }
          const bound = Math.imul(range >>> 16, (f + s) >>> 1) >>> 0;
          let bit = 0;
          if (value < bound) {
            range = bound;
            fast[p] = f + ((65535 - f) >> model.fastRate);
            slow[p] = s + ((65535 - s) >> rate);
          } else {
            value = (value - bound) >>> 0;
            range = (range - bound) >>> 0;
            fast[p] = f - (f >> model.fastRate);
            slow[p] = s - (s >> rate);
            bit = 1;
          }
          while (range < leastRange) {
            range = (range << 8) >>> 0;
            value = ((value << 8) | data[at]!) >>> 0;
            at++;
          }
          bits = (bits << 1) | bit;
          if (i === behind) {
            break;
          }
          p = mantissa + 1 + bit;
        }
        const size = bits >> 1;
        const negative = bits & 1;
        last = negative !== 0 ? prediction - size : prediction + size;
        mark |= (size << sizeShift) | ((1 + negative) << signShift);
        if (last < 0 || last > most) {
          throw new DecodeError(`rgbd: depth of a pixel is ${last} steps, expected 0 to ${most}`);
        }
      }
      codes[pixel] = last;
      marks[x + 1] = mark;
      west = last;
      westMark = mark;
      corner = north;
      cornerMark = northMark;
      north = right;
      northMark = rightMark;
    }
    state[width] = range;
    state[code] = value;
    decoder.at = at;
    return last;
  }
}
