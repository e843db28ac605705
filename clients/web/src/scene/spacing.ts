// The spacing of points on a surface, measured from their positions.

/** The mean number of points in an occupied cell that the measurement aims at, and accepts. */
const aim = 8;
const least = 3;
const most = 30;
/**
 * A surface of random direction meets 1.5 × area / edge² cells of a grid: the mean of
 * |nx| + |ny| + |nz| over all directions.
 */
const cellsPerArea = 1.5;
/** The greatest number of cells: 512 kB of bits. */
const mostCells = 1 << 22;
/** The accepted spacing in metres. */
const shortest = 5e-4;
const longest = 0.2;

const bits = new Uint32Array(mostCells / 32);

/** A box around points, in metres. */
export interface Bounds {
  min: [number, number, number];
  max: [number, number, number];
}

/** Returns the box around every stride-th point. */
export function boundsOf(positions: Float32Array, count: number, stride = 1): Bounds {
  const min: [number, number, number] = [Infinity, Infinity, Infinity];
  const max: [number, number, number] = [-Infinity, -Infinity, -Infinity];
  for (let i = 0; i < count; i += stride) {
    for (let axis = 0; axis < 3; axis++) {
      const v = positions[3 * i + axis]!;
      min[axis] = Math.min(min[axis]!, v);
      max[axis] = Math.max(max[axis]!, v);
    }
  }
  return { min, max };
}

/**
 * Returns the spacing of points in metres: the edge of the square of the surface that each point
 * has on average. The area of the surface follows from the number of occupied cells of a grid. The
 * cells are about three spacings wide, so that holes between points do not count as holes of the
 * surface.
 */
export function spacingOf(positions: Float32Array, count: number, bounds: Bounds): number {
  if (count < 2) {
    return longest;
  }
  const size = bounds.max.map((v, axis) => Math.max(v - bounds.min[axis]!, 1e-4));
  // The first guess is a box that the points cover.
  let edge = Math.sqrt((aim * 2 * (size[0]! * size[1]! + size[1]! * size[2]! + size[2]! * size[0]!)) / count) / 2;
  let spacing = longest;
  for (let attempt = 0; attempt < 3; attempt++) {
    edge = Math.max(edge, Math.cbrt((1.1 * size[0]! * size[1]! * size[2]!) / mostCells), shortest);
    const occupied = occupiedCells(positions, count, bounds, size, edge);
    spacing = Math.sqrt((occupied * edge * edge) / cellsPerArea / count);
    const each = count / occupied;
    if (each >= least && each <= most) {
      break;
    }
    edge = Math.sqrt(aim * cellsPerArea) * spacing;
  }
  return Math.min(Math.max(spacing, shortest), longest);
}

/** Counts the cells of a grid with points. Points outside of the bounds count in the outermost cells. */
function occupiedCells(positions: Float32Array, count: number, { min }: Bounds, size: readonly number[], edge: number): number {
  const [columns, rows, layers] = size.map((v) => Math.floor(v / edge) + 1) as [number, number, number];
  const words = Math.min((columns * rows * layers + 31) >>> 5, bits.length);
  bits.fill(0, 0, words);
  const per = 1 / edge;
  const [left, low, back] = min;
  let occupied = 0;
  for (let i = 0, at = 0; i < count; i++, at += 3) {
    const x = Math.min(Math.max(((positions[at]! - left) * per) | 0, 0), columns - 1);
    const y = Math.min(Math.max(((positions[at + 1]! - low) * per) | 0, 0), rows - 1);
    const z = Math.min(Math.max(((positions[at + 2]! - back) * per) | 0, 0), layers - 1);
    const cell = x + columns * (y + rows * z);
    const word = cell >>> 5;
    const bit = 1 << (cell & 31);
    if (word < words && (bits[word]! & bit) === 0) {
      bits[word]! |= bit;
      occupied++;
    }
  }
  return Math.max(occupied, 1);
}
