import { DecodeError } from "../points";
import { DepthDecoder } from "./depths";
import { blockAll, blockEdge, blockMixed, blockNone, type Grid } from "./grid";
import * as model from "./probabilities";
import { RangeDecoder } from "./ranges";

/** Decodes mask and depths of a tile. */
export class PlaneDecoder {
  private readonly decoder = new RangeDecoder();
  private readonly depths = new DepthDecoder();

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
    this.depths.decode(grid, decoder, most);
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
}
