import { blockAll, blockEdge, blockMixed, blockNone, type Grid } from "../../decode/rgbd/grid";
import * as model from "../../decode/rgbd/probabilities";
import { RangeEncoder } from "./ranges";

/** Encodes mask and depths of a tile; the result is that of the encoder in package pkg/codec/rgbd. */
export class PlaneEncoder {
  private readonly encoder = new RangeEncoder();

  /** Encodes the depths of a grid without residuals and kinds. The result is valid until the next call. */
  encode(grid: Grid): Uint8Array {
    this.encoder.begin();
    this.mask(grid);
    const { columns, rows, valid, codes, residuals } = grid;
    let last = 0;
    for (let y = 0; y < rows; y++) {
      for (let at = grid.row(y), end = at + columns; at < end; at++) {
        if (valid[at] === 0) {
          continue;
        }
        const prediction = grid.predict(at, last);
        last = codes[at]!;
        const residual = last - prediction;
        this.residual(grid, at, residual);
        residuals[at] = residual;
      }
    }
    return this.encoder.end();
  }

  private mask(grid: Grid): void {
    const { encoder } = this;
    const { across, down, kinds, valid, columns, rows } = grid;
    for (let y = 0; y < down; y++) {
      for (let x = 0, at = grid.block(0, y); x < across; x++, at++) {
        const context = grid.kindContext(at);
        const kind = kindOf(grid, x, y);
        kinds[at] = kind;
        encoder.bit(model.mixed + context, kind === blockMixed ? 1 : 0);
        if (kind !== blockMixed) {
          encoder.bit(model.all + context, kind);
        }
      }
    }
    for (let y = 0; y < rows; y++) {
      const row = grid.row(y);
      for (let x = 0, block = grid.block(0, Math.floor(y / blockEdge)); x < columns; x += blockEdge, block++) {
        for (let at = row + x, end = row + Math.min(columns, x + blockEdge); kinds[block] === blockMixed && at < end; at++) {
          encoder.bit(model.pixels + grid.maskContext(at), valid[at]!);
        }
      }
    }
  }

  /** Encodes the number of bits of a residual's size in unary code, the bits behind the leading one, and the sign. */
  private residual(grid: Grid, at: number, residual: number): void {
    const { encoder } = this;
    const context = grid.context(at);
    const zero = model.zeros + grid.pattern(at) + context;
    const value = Math.abs(residual);
    const length = 32 - Math.clz32(value);
    if (length === 0) {
      encoder.bit(zero, 0);
      return;
    }
    encoder.bit(zero, 1);
    const lengths = model.lengths + context * model.maxLength;
    for (let i = 1; i < length; i++) {
      encoder.bit(lengths + i, 1);
    }
    if (length < model.maxLength) {
      encoder.bit(lengths + length, 0);
    }
    if (length > 1) {
      const mantissa = model.mantissas + 4 * (context * (model.maxLength + 1) + length);
      const first = (value >> (length - 2)) & 1;
      encoder.bit(mantissa, first);
      if (length > 2) {
        encoder.bit(mantissa + 1 + first, (value >> (length - 3)) & 1);
        encoder.even(value, length - 3);
      }
    }
    encoder.bit(model.signs + grid.signContext(at), residual < 0 ? 1 : 0);
  }
}

/** Returns the kind of a block. */
function kindOf(grid: Grid, x: number, y: number): number {
  const right = Math.min(grid.columns, (x + 1) * blockEdge);
  const bottom = Math.min(grid.rows, (y + 1) * blockEdge);
  let found = 0;
  for (let row = y * blockEdge; row < bottom; row++) {
    for (let at = grid.row(row) + x * blockEdge, end = grid.row(row) + right; at < end; at++) {
      found += grid.valid[at]!;
    }
  }
  if (found === 0) {
    return blockNone;
  }
  return found === (right - x * blockEdge) * (bottom - y * blockEdge) ? blockAll : blockMixed;
}
