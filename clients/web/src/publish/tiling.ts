// The division of an object into tiles: by direction around the middle of its box and by height, as
// in all of our publishers.

import type { Points } from "../decode/points";
import type { Box } from "../signal/messages";

export const tileCounts = [1, 2, 4, 9] as const;

/**
 * Divides space into tiles. Front is +z, right is +x. The tiles are
 *
 *  - 1: all
 *  - 2: front, back
 *  - 4: the quadrants front-right, front-left, back-right, back-left
 *  - 9: the quadrants of the lower 40 %, those of the 40 % above, and the top 20 %, which is the head
 *    of a standing person
 */
export class Tiling {
  private readonly middle: { x: number; z: number };
  private readonly layers: readonly [number, number];

  constructor(
    readonly count: number,
    readonly box: Box,
  ) {
    if (!tileCounts.some((c) => c === count)) {
      throw new Error(`${count} tiles, expected one of ${tileCounts.join(", ")}`);
    }
    const { min, max } = box;
    this.middle = { x: (min[0] + max[0]) / 2, z: (min[2] + max[2]) / 2 };
    this.layers = [min[1] + 0.4 * (max[1] - min[1]), min[1] + 0.8 * (max[1] - min[1])];
  }

  tileOf(x: number, y: number, z: number): number {
    const quadrant = (x < this.middle.x ? 1 : 0) + (z < this.middle.z ? 2 : 0);
    switch (this.count) {
      case 1:
        return 0;
      case 2:
        return quadrant >> 1;
      case 4:
        return quadrant;
      default:
        return y >= this.layers[1] ? 8 : quadrant + (y >= this.layers[0] ? 4 : 0);
    }
  }

  /** Returns the name and the box of a tile. */
  tile(index: number): { label: string; box: Box } {
    const { min, max } = this.box;
    const box: Box = { min: [...min], max: [...max] };
    const names: string[] = [];
    if (this.count === 9) {
      if (index === 8) {
        box.min[1] = this.layers[1];
        return { label: "top", box };
      }
      const upper = index >= 4;
      names.push(upper ? "middle" : "bottom");
      [box.min[1], box.max[1]] = upper ? this.layers : [min[1], this.layers[0]];
    }
    const quadrant = this.count === 2 ? index << 1 : index & 3;
    if (this.count > 1) {
      const back = (quadrant & 2) !== 0;
      names.push(back ? "back" : "front");
      (back ? box.max : box.min)[2] = this.middle.z;
    }
    if (this.count > 2) {
      const left = (quadrant & 1) !== 0;
      names.push(left ? "left" : "right");
      (left ? box.max : box.min)[0] = this.middle.x;
    }
    return { label: names.join(" "), box };
  }
}

/**
 * One quality: a share of an object's points, on a grid with the given bits for the longest edge of
 * its box.
 */
export interface Quality {
  name: string;
  share: number;
  bits: number;
}

/** The default qualities of all our publishers, by name. */
export const standardQualities: readonly Quality[] = [
  { name: "low", share: 0.25, bits: 9 },
  { name: "mid", share: 0.5, bits: 10 },
  { name: "high", share: 1, bits: 11 },
];

/** The points of one tile. A quality has the first of them, according to counts. */
export interface Part {
  points: Points;
  counts: number[];
}

/**
 * Sorts the points of an object into tiles, in their order and inside of the box: points outside
 * are moved to its sides, since Draco cannot code points outside of the quantised box. shares are
 * those of the qualities, ascending.
 */
export function cut(from: Points, tiling: Tiling, shares: readonly number[], take: (room: number) => Points): Part[] {
  const { min, max } = tiling.box;
  const parts: Part[] = Array.from({ length: tiling.count }, () => ({ points: take(from.count), counts: [] }));
  for (const { points } of parts) {
    points.count = 0;
  }
  const limits = shares.map((share) => Math.round(share * from.count));
  let quality = 0;
  for (let i = 0; i <= from.count; i++) {
    while (quality < limits.length && limits[quality] === i) {
      parts.forEach(({ points, counts }) => counts.push(points.count));
      quality++;
    }
    if (i === from.count) {
      break;
    }
    const x = Math.min(Math.max(from.positions[3 * i]!, min[0]), max[0]);
    const y = Math.min(Math.max(from.positions[3 * i + 1]!, min[1]), max[1]);
    const z = Math.min(Math.max(from.positions[3 * i + 2]!, min[2]), max[2]);
    const { points } = parts[tiling.tileOf(x, y, z)]!;
    const at = 3 * points.count++;
    points.positions[at] = x;
    points.positions[at + 1] = y;
    points.positions[at + 2] = z;
    points.colors[at] = from.colors[3 * i]!;
    points.colors[at + 1] = from.colors[3 * i + 1]!;
    points.colors[at + 2] = from.colors[3 * i + 2]!;
  }
  return parts;
}
