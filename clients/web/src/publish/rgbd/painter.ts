// Colours of pixels without a depth that cost few bits in JPEG: the mean of the pixels with a depth of
// their block of 8×8 pixels, or else of their square of 16×16, or else the colour of the square before.

import { blockEdge, type Grid } from "../../decode/rgbd/grid";

/** The number of blocks across a square, and of pixels. */
const squareBlocks = 2;
const squareEdge = squareBlocks * blockEdge;
/** A sum of colours: red, green, blue, number. */
const sumLength = 4;

export class Painter {
  /** The sums of the blocks of one row of squares, and their colours. */
  private sums = new Int32Array(0);
  private fill = new Uint8Array(0);

  /** Fills the pixels of the grid without a depth. pixels has red, green, blue and opacity of each. */
  paint(pixels: Uint8ClampedArray, grid: Grid): void {
    const across = Math.ceil(grid.across / squareBlocks) * squareBlocks;
    if (this.sums.length < squareBlocks * across * sumLength) {
      this.sums = new Int32Array(squareBlocks * across * sumLength);
      this.fill = new Uint8Array(squareBlocks * across * sumLength);
    }
    const last = [128, 128, 128];
    for (let top = 0; top < grid.rows; top += squareEdge) {
      this.add(pixels, grid, top, across);
      this.choose(across, last);
      this.fillRows(pixels, grid, top, across);
    }
  }

  /** Sums the colours of the pixels with a depth in each block. */
  private add(pixels: Uint8ClampedArray, grid: Grid, top: number, across: number): void {
    const { sums } = this;
    const { valid, columns } = grid;
    sums.fill(0);
    for (let y = top; y < Math.min(grid.rows, top + squareEdge); y++) {
      const blocks = Math.floor((y - top) / blockEdge) * across;
      for (let x = 0, at = grid.row(y), pixel = 4 * y * columns; x < columns; x++, at++, pixel += 4) {
        if (valid[at] === 0) {
          continue;
        }
        const block = sumLength * (blocks + Math.floor(x / blockEdge));
        sums[block]! += pixels[pixel]!;
        sums[block + 1]! += pixels[pixel + 1]!;
        sums[block + 2]! += pixels[pixel + 2]!;
        sums[block + 3]!++;
      }
    }
  }

  /** Sets the colour of each block. last is the colour of the square before, and becomes that of the last square. */
  private choose(across: number, last: number[]): void {
    const { sums, fill } = this;
    for (let left = 0; left < across; left += squareBlocks) {
      const blocks = [left, left + 1, left + across, left + across + 1].map((block) => sumLength * block);
      const count = blocks.reduce((sum, block) => sum + sums[block + 3]!, 0);
      for (let channel = 0; channel < 3; channel++) {
        if (count > 0) {
          last[channel] = mean(blocks.reduce((sum, block) => sum + sums[block + channel]!, 0), count);
        }
        for (const block of blocks) {
          fill[block + channel] = sums[block + 3]! > 0 ? mean(sums[block + channel]!, sums[block + 3]!) : last[channel]!;
        }
      }
    }
  }

  private fillRows(pixels: Uint8ClampedArray, grid: Grid, top: number, across: number): void {
    const { fill } = this;
    const { valid, columns } = grid;
    for (let y = top; y < Math.min(grid.rows, top + squareEdge); y++) {
      const blocks = Math.floor((y - top) / blockEdge) * across;
      for (let x = 0, at = grid.row(y), pixel = 4 * y * columns; x < columns; x++, at++, pixel += 4) {
        if (valid[at] === 0) {
          const block = sumLength * (blocks + Math.floor(x / blockEdge));
          pixels[pixel] = fill[block]!;
          pixels[pixel + 1] = fill[block + 1]!;
          pixels[pixel + 2] = fill[block + 2]!;
        }
      }
    }
  }
}

function mean(sum: number, count: number): number {
  return Math.floor((sum + (count >> 1)) / count);
}
