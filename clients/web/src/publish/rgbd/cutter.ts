// Tiles of "rgbd": rectangles of a depth camera's image, as those of volpeer publish --tiling raster.

import type { Camera } from "../../decode/rgbd/raster";
import type { Box } from "../../signal/messages";
import type { DepthMap } from "../depth";
import type { Quality } from "../tiling";
import type { Plan } from "../traffic";
import type { Level } from "./frames";
import type { RasterJob } from "./traffic";

/** The rectangles across and down by the number of tiles. People are taller than wide. */
const tilings = new Map<number, readonly [number, number]>([[1, [1, 1]], [2, [1, 2]], [4, [2, 2]], [9, [3, 3]]]);
/** The alignment of rectangles: a square of JPEG with halved chroma, and a multiple of every reduction. */
const alignment = 16;
/** The margin of the boxes of tiles, relative to the object's longest edge. */
const margin = 0.1;

/** The qualities by reduction: the defaults of volpeer. */
const levels: readonly Level[] = [
  { reduction: 0, step: 0.00065, colorQuality: 80 },
  { reduction: 1, step: 0.0015, colorQuality: 75 },
  { reduction: 2, step: 0.003, colorQuality: 75 },
];
/**
 * The number of units of a camera's depth from which on a step need not be a multiple of the unit:
 * depths would fall on uneven steps.
 */
const exactUnits = 4;
const leastColorQuality = 20;

/** The approximate bits per point by reduction, for estimates before the first frame. */
const bitsPerPoint = [4, 6, 8];

/**
 * Returns the parameters of a quality: half of the points or fewer mean half of the raster, a quarter
 * or fewer a quarter.
 * @param unit is the distance of two depths of the camera in metres
 * @param share is below 1 for an uplink that is too slow for the lowest quality: steps and colours are
 * then coarser
 */
export function levelOf({ share: points }: Quality, unit: number, share: number): Level {
  const { reduction, step, colorQuality } = levels[points > 0.5 ? 0 : points > 0.25 ? 1 : 2]!;
  const coarse = step / share;
  return {
    reduction,
    step: coarse >= exactUnits * unit ? coarse : unit * Math.max(1, Math.round(coarse / unit)),
    colorQuality: Math.max(leastColorQuality, Math.round(colorQuality * share)),
  };
}

/** A rectangle in pixels of a camera's image. */
export interface Rectangle {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** The description of a tile for the server. */
export interface RasterTile {
  label: string;
  box: Box;
  /** The number of points of the first image. */
  points: number;
}

/** Returns the bit rate of a quality of a tile, as estimated before the first frame. */
export function bitrateOf(quality: Quality, { points }: RasterTile, fps: number): number {
  const { reduction } = levelOf(quality, 0, 1);
  return Math.max(1000, Math.round(((bitsPerPoint[reduction]! * points) / 4 ** reduction) * fps));
}

/** Returns the pinhole camera of a map. */
export function cameraOf({ width, height, tangents: [left, right, down, up], pose }: DepthMap): Camera {
  const fx = width / (right - left);
  const fy = height / (up - down);
  const [m0, m1, m2, , m4, m5, m6, , m8, m9, m10, , x, y, z] = [...pose] as [number, number, number, number, number, number, number, number, number, number, number, number, number, number, number];
  return {
    width, height, fx, fy, cx: -left * fx - 0.5, cy: up * fy - 0.5, distortion: undefined,
    pose: { rotation: [m0, m4, m8, m1, m5, m9, m2, m6, m10], translation: [x, y, z] },
  };
}

/** Cuts a rectangle evenly around the pixels with a depth; the outer rectangles end at the border of the image. */
export function rectanglesOf(inner: Rectangle, width: number, height: number, tiles: number): Rectangle[] {
  const tiling = tilings.get(tiles);
  if (!tiling) {
    throw new Error(`${tiles} rectangles, expected one of ${[...tilings.keys()].join(", ")}`);
  }
  const [across, down] = tiling;
  const border = (low: number, high: number, index: number, n: number, size: number): number => {
    if (index === 0) {
      return 0;
    }
    return index === n ? size : Math.floor((low + Math.floor(((high - low) * index) / n)) / alignment) * alignment;
  };
  return Array.from({ length: tiles }, (_, i) => {
    const [x, y] = [i % across, Math.floor(i / across)];
    return {
      left: border(inner.left, inner.right, x, across, width), right: border(inner.left, inner.right, x + 1, across, width),
      top: border(inner.top, inner.bottom, y, down, height), bottom: border(inner.top, inner.bottom, y + 1, down, height),
    };
  });
}

/** A part of a map with the box of its points. */
interface Extent extends Rectangle {
  points: number;
  box: Box;
}

/**
 * Cuts the maps of a camera into rectangles, which are those of the first map with points, so that
 * tiles of different maps fit together.
 */
export class RasterCutter {
  private rectangles: Rectangle[] | undefined;
  private readonly free: { depths: Float32Array<ArrayBuffer>; colors: Uint8Array<ArrayBuffer> }[] = [];

  constructor(private readonly plan: Plan) {}

  /** Removes the pixels outside of the publication's box, and returns the number of those inside. */
  crop(map: DepthMap): number {
    return this.extent(map, { left: 0, top: 0, right: map.width, bottom: map.height }).points;
  }

  /** Sets the rectangles by a cropped map, and describes them; undefined if the map has no points. */
  learn(map: DepthMap): RasterTile[] | undefined {
    const { width, height } = map;
    const all = this.extent(map, { left: 0, top: 0, right: width, bottom: height });
    if (all.points === 0) {
      return undefined;
    }
    this.rectangles = rectanglesOf(all, width, height, this.plan.tiles);
    return this.rectangles.map((rectangle, i) => {
      const { points, box } = this.extent(map, rectangle);
      return { label: `camera 0, rectangle ${i}`, box: points > 0 ? this.widened(box) : this.plan.box, points };
    });
  }

  /**
   * Returns the smallest rectangle and box with the points of a rectangle. Pixels with points outside
   * of the publication's box lose their depth.
   */
  private extent({ width, depth, tangents: [left, right, down, up], height, pose }: DepthMap, within: Rectangle): Extent {
    const { min, max } = this.plan.box;
    const found: Extent = { left: width, top: height, right: 0, bottom: 0, points: 0, box: { min: [...max], max: [...min] } };
    const { min: low, max: high } = found.box;
    for (let row = within.top; row < within.bottom; row++) {
      const ty = up + ((down - up) * (row + 0.5)) / height;
      for (let column = within.left, at = row * width + column; column < within.right; column++, at++) {
        const d = depth[at]!;
        if (!(d > 0)) {
          continue;
        }
        const cx = (left + ((right - left) * (column + 0.5)) / width) * d;
        const cy = ty * d;
        const x = pose[0]! * cx + pose[4]! * cy - pose[8]! * d + pose[12]!;
        const y = pose[1]! * cx + pose[5]! * cy - pose[9]! * d + pose[13]!;
        const z = pose[2]! * cx + pose[6]! * cy - pose[10]! * d + pose[14]!;
        if (x < min[0] || x > max[0] || y < min[1] || y > max[1] || z < min[2] || z > max[2]) {
          depth[at] = 0;
          continue;
        }
        found.points++;
        found.left = Math.min(found.left, column);
        found.right = Math.max(found.right, column + 1);
        found.top = Math.min(found.top, row);
        found.bottom = row + 1;
        low[0] = Math.min(low[0], x);
        low[1] = Math.min(low[1], y);
        low[2] = Math.min(low[2], z);
        high[0] = Math.max(high[0], x);
        high[1] = Math.max(high[1], y);
        high[2] = Math.max(high[2], z);
      }
    }
    return found;
  }

  /** Returns a box with a margin inside of the publication's box. */
  private widened(box: Box): Box {
    const { min, max } = this.plan.box;
    const more = margin * Math.max(...max.map((v, axis) => v - min[axis]!));
    return {
      min: [Math.max(min[0], box.min[0] - more), Math.max(min[1], box.min[1] - more), Math.max(min[2], box.min[2] - more)],
      max: [Math.min(max[0], box.max[0] + more), Math.min(max[1], box.max[1] + more), Math.min(max[2], box.max[2] + more)],
    };
  }

  /** Returns the encoding of a tile of a cropped map at some qualities. */
  job(map: DepthMap, tile: number, qualities: readonly number[], share: number, of: { number: number; captured: number }): RasterJob {
    const { left, top, right, bottom } = this.rectangles![tile]!;
    const [columns, rows] = [right - left, bottom - top];
    const { depths, colors } = this.take(columns * rows);
    for (let y = 0; y < rows; y++) {
      const from = (top + y) * map.width + left;
      depths.set(map.depth.subarray(from, from + columns), y * columns);
      colors.set(map.colors.subarray(4 * from, 4 * (from + columns)), 4 * y * columns);
    }
    return {
      ...of, tile, camera: cameraOf(map), depths, colors, left, top, columns, rows,
      qualities: qualities.map((quality) => ({ quality, level: levelOf(this.plan.qualities[quality]!, map.unit, share) })),
    };
  }

  private take(pixels: number): { depths: Float32Array<ArrayBuffer>; colors: Uint8Array<ArrayBuffer> } {
    const at = this.free.findIndex(({ depths }) => depths.length >= pixels);
    return at < 0 ? { depths: new Float32Array(pixels), colors: new Uint8Array(4 * pixels) } : this.free.splice(at, 1)[0]!;
  }

  /** Returns the memory of an encoded job. */
  give(depths: Float32Array<ArrayBuffer>, colors: Uint8Array<ArrayBuffer>): void {
    this.free.push({ depths, colors });
  }
}
