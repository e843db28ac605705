// The raster of a tile while it is coded: depth codes, with a border without depths, so that every
// pixel has all neighbours of the contexts (docs/codec.md, "The format of rgbd").

import { contexts, levels } from "./probabilities";

export const blockEdge = 8;
const borderColumns = 2;
const borderRows = 2;

export const blockNone = 0;
export const blockAll = 1;
export const blockMixed = 2;

/** The sum of neighbouring residuals from which on the level is the last. */
export const mostActivity = 100;
const levelBegins = [0, 1, 2, 3, 5, 7, 10, 14, 20, 30, 50, mostActivity];
export const levelOf = Uint8Array.from({ length: mostActivity + 1 }, (_, activity) => levelBegins.filter((begin) => begin <= activity).length - 1);

/** Returns an array of zeros of at least the given length, which reuses memory. */
function zeroed<T extends Uint8Array | Int32Array>(array: T, length: number, make: new (length: number) => T): T {
  if (array.length < length) {
    return new make(Math.ceil(length * 1.25));
  }
  array.fill(0, 0, length);
  return array;
}

export class Grid {
  columns = 0;
  rows = 0;
  /** The distance of two rows, and the index of the first pixel. */
  stride = 0;
  first = 0;
  /** 1 for pixels with a depth. */
  valid: Uint8Array = new Uint8Array(0);
  /** Depths in steps from the nearest, and the differences from the prediction; 0 for other pixels. */
  codes: Int32Array = new Int32Array(0);
  residuals: Int32Array = new Int32Array(0);
  /** The kind of each block, with a border of empty blocks to the left and above. */
  kinds: Uint8Array = new Uint8Array(0);
  across = 0;
  down = 0;

  reset(columns: number, rows: number): void {
    this.columns = columns;
    this.rows = rows;
    this.stride = columns + 2 * borderColumns;
    this.first = borderRows * this.stride + borderColumns;
    const size = this.stride * (rows + borderRows);
    this.valid = zeroed(this.valid, size, Uint8Array);
    this.codes = zeroed(this.codes, size, Int32Array);
    this.residuals = zeroed(this.residuals, size, Int32Array);
    this.across = Math.ceil(columns / blockEdge);
    this.down = Math.ceil(rows / blockEdge);
    this.kinds = zeroed(this.kinds, (this.across + 1) * (this.down + 1), Uint8Array);
  }

  /** Returns the index of the first pixel of a row. */
  row(y: number): number {
    return this.first + y * this.stride;
  }

  /** Returns the index of the kind of a block. */
  block(x: number, y: number): number {
    return (y + 1) * (this.across + 1) + x + 1;
  }

  /** Returns the context of a block's kind. */
  kindContext(at: number): number {
    return 3 * this.kinds[at - 1]! + this.kinds[at - this.across - 1]!;
  }

  /** Returns the context of a pixel of the mask: W, N, NW, NE in the lowest bits, then WW, NWW, NEE, NN, NNW and NNE. */
  maskContext(at: number): number {
    const v = this.valid;
    const above = at - this.stride;
    const second = above - this.stride;
    return (
      v[at - 1]! | (v[above]! << 1) | (v[above - 1]! << 2) | (v[above + 1]! << 3) | (v[at - 2]! << 4) | (v[above - 2]! << 5) | (v[above + 2]! << 6) |
      (v[second]! << 7) | (v[second - 1]! << 8) | (v[second + 1]! << 9)
    );
  }

  /**
   * Returns the prediction of a pixel's code: the median of W, N and W + N − NW, as in JPEG-LS
   * (Weinberger, Seroussi and Sapiro, "The LOCO-I lossless image compression algorithm", 2000).
   * last is the code of the pixel coded before.
   */
  predict(at: number, last: number): number {
    const v = this.valid;
    const c = this.codes;
    const above = at - this.stride;
    if ((v[at - 1]! & v[above]! & v[above - 1]!) !== 0) {
      const west = c[at - 1]!;
      const north = c[above]!;
      const low = west < north ? west : north;
      const high = west < north ? north : west;
      const plane = west + north - c[above - 1]!;
      return plane < low ? low : plane > high ? high : plane;
    }
    if (v[at - 1] !== 0) {
      return c[at - 1]!;
    }
    if (v[above] !== 0) {
      return c[above]!;
    }
    if (v[above + 1] !== 0) {
      return c[above + 1]!;
    }
    return v[above - 1] !== 0 ? c[above - 1]! : last;
  }

  /** Returns the context of a pixel's residual. */
  context(at: number): number {
    const v = this.valid;
    const e = this.residuals;
    const above = at - this.stride;
    const activity = 2 * (Math.abs(e[at - 1]!) + Math.abs(e[above]!)) + Math.abs(e[above - 1]!) + Math.abs(e[above + 1]!);
    const level = levelOf[activity < mostActivity ? activity : mostActivity]!;
    return (v[at - 1]! & v[above]! & v[above - 1]! & v[above + 1]!) !== 0 ? level : level + levels;
  }

  /** Returns contexts × the pattern of neighbours with equal codes. */
  pattern(at: number): number {
    const c = this.codes;
    const above = at - this.stride;
    const corner = c[above - 1]!;
    const north = c[above]!;
    return contexts * ((north === corner ? 1 : 0) + (c[at - 1] === corner ? 2 : 0) + (north === c[above + 1] ? 4 : 0));
  }

  /** Returns the context of the sign of a pixel's residual. */
  signContext(at: number): number {
    const west = this.residuals[at - 1]!;
    const north = this.residuals[at - this.stride]!;
    return (west > 0 ? 3 : west < 0 ? 6 : 0) + (north > 0 ? 1 : north < 0 ? 2 : 0);
  }
}
