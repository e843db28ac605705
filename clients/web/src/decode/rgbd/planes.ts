import { DecodeError } from "../points";
import { blockAll, blockEdge, blockMixed, blockNone, type Grid } from "./grid";
import * as model from "./probabilities";
import { RangeDecoder } from "./ranges";

/** Decodes mask and depths of a tile. */
export class PlaneDecoder {
  private readonly decoder = new RangeDecoder();

  /**
   * Reads mask and depths into a grid that was reset to the size of the tile. The mask must have the
   * given number of pixels, and depth codes must be at most most.
   */
  decode(grid: Grid, data: Uint8Array, points: number, most: number): void {
    const { decoder } = this;
    decoder.begin(data);
    const found = this.mask(grid);
    if (decoder.beyond || found !== points) {
      throw new DecodeError(`rgbd: mask has ${found} pixels, expected ${points}`);
    }
    this.depths(grid, most);
    if (decoder.beyond) {
      throw new DecodeError(`rgbd: depths end after ${data.length} bytes, expected more`);
    }
    if (decoder.rest > 0) {
      throw new DecodeError(`rgbd: ${decoder.rest} bytes behind the depths, expected none`);
    }
  }

  /** Reads the kinds of all blocks, then the pixels of mixed blocks; returns the number of pixels with a depth. */
  private mask(grid: Grid): number {
    const { decoder } = this;
    const { across, down, kinds, valid, columns, rows } = grid;
    for (let y = 0; y < down; y++) {
      for (let x = 0, at = grid.block(0, y); x < across; x++, at++) {
        const context = grid.kindContext(at);
        kinds[at] = decoder.bit(model.mixed + context) !== 0 ? blockMixed : decoder.bit(model.all + context);
      }
    }
    let points = 0;
    for (let y = 0; y < rows; y++) {
      const row = grid.row(y);
      for (let x = 0, block = grid.block(0, Math.floor(y / blockEdge)); x < columns; x += blockEdge, block++) {
        const kind = kinds[block]!;
        if (kind === blockNone) {
          continue;
        }
        const end = row + Math.min(columns, x + blockEdge);
        if (kind === blockAll) {
          valid.fill(1, row + x, end);
          points += end - row - x;
          continue;
        }
        for (let at = row + x; at < end; at++) {
          const bit = decoder.bit(model.pixels + grid.maskContext(at));
          valid[at] = bit;
          points += bit;
        }
      }
    }
    return points;
  }

  private depths(grid: Grid, most: number): void {
    const { decoder } = this;
    const { columns, rows, valid, codes, residuals } = grid;
    let last = 0;
    // A frame must not cause work beyond its data.
    for (let y = 0; y < rows && !decoder.beyond; y++) {
      const row = grid.row(y);
      for (let at = row; at < row + columns; at++) {
        if (valid[at] === 0) {
          continue;
        }
        const prediction = grid.predict(at, last);
        const context = grid.context(at);
        if (decoder.bit(model.zeros + grid.pattern(at) + context) === 0) {
          last = prediction;
        } else {
          const residual = this.residual(context, grid.signContext(at));
          residuals[at] = residual;
          last = prediction + residual;
        }
        if (last < 0 || last > most) {
          throw new DecodeError(`rgbd: depth of a pixel is ${last} steps, expected 0 to ${most}`);
        }
        codes[at] = last;
      }
    }
  }

  /** Reads a residual that is not 0. */
  private residual(context: number, signContext: number): number {
    const { decoder } = this;
    let length = 1;
    while (length < model.maxLength && decoder.bit(model.lengths + context * model.maxLength + length) !== 0) {
      length++;
    }
    let value = 1;
    if (length > 1) {
      const mantissa = model.mantissas + 4 * (context * (model.maxLength + 1) + length);
      const first = decoder.bit(mantissa);
      value = 2 | first;
      if (length > 2) {
        value = (value << 1) | decoder.bit(mantissa + 1 + first);
        if (length > 3) {
          value = (value << (length - 3)) | decoder.even(length - 3);
        }
      }
    }
    return decoder.bit(model.signs + signContext) !== 0 ? -value : value;
  }
}
