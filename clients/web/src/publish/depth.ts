// Computes points from pictures of depth and colour.

import type { Points } from "../decode/points";
import type { Box } from "../signal/messages";

/**
 * The coding of depth in a picture: as brightness, with near or far bright, or as a hue that starts
 * and ends at red (near), as in phones' depth videos.
 */
export type DepthCoding = "near-bright" | "far-bright" | "hue";

/**
 * The parts of a picture with depth and colour. Without a colour part, the colours are those of the
 * depth part.
 */
export type Arrangement = "depth-left" | "depth-right" | "depth-top" | "depth-bottom" | "depth-only";

/** The view of a camera. */
export interface Lens {
  coding: DepthCoding;
  arrangement: Arrangement;
  /** The range of depths in metres that corresponds to the coding. */
  near: number;
  far: number;
  /** The horizontal angle of view in degrees. */
  fov: number;
  /** The height of the camera in metres. */
  height: number;
}

export const usualLens: Lens = { coding: "near-bright", arrangement: "depth-left", near: 0.4, far: 2.5, fov: 62, height: 1.2 };

/** The input from the page: a picture of a camera, a depth map, or points of an application. */
export type Picture = { kind: "image"; image: ImageBitmap } | { kind: "map"; map: DepthMap } | { kind: "points"; points: Points };

/** Distances in metres along the view for a grid of pixels, row by row from the top, 0 for none. */
export interface DepthMap {
  width: number;
  height: number;
  depth: Float32Array<ArrayBuffer>;
  /** The distance between neighbouring depths that the camera distinguishes, in metres. */
  unit: number;
  /** Red, green, blue, alpha of the same pixels. */
  colors: Uint8ClampedArray<ArrayBuffer> | Uint8Array<ArrayBuffer>;
  /** The tangents of the angles of view: to the left, right, down and up, the first and third negative. */
  tangents: readonly [left: number, right: number, down: number, up: number];
  /**
   * The pose of the camera: a column-major 4×4 matrix as in WebXR and WebGL; the view is along -z.
   */
  pose: Float32Array<ArrayBuffer> | readonly number[];
}

/**
 * Returns the box for a camera's points: the middle of its range is above the origin, and near
 * points are in front (+z).
 */
export function boxOf({ near, far, fov, height }: Lens, aspect = 4 / 3): Box {
  const half = Math.tan((fov * Math.PI) / 360) * far;
  const up = half / aspect;
  const deep = (far - near) / 2;
  return { min: [-half, height - up, -deep], max: [half, height + up, deep] };
}

/** Returns that box by the aspect ratio of the whole picture, width over height, with depth and colour. */
export function boxOfPicture(lens: Lens, aspect: number): Box {
  const { arrangement } = lens;
  const beside = arrangement === "depth-left" || arrangement === "depth-right";
  const stacked = arrangement === "depth-top" || arrangement === "depth-bottom";
  return boxOf(lens, beside ? aspect / 2 : stacked ? aspect * 2 : aspect);
}

/** Returns the camera's pose for points in that box. */
export function poseOf({ near, far, height }: Lens): number[] {
  return [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, height, (near + far) / 2, 1];
}

/** Computes a depth map from the pixels of a picture. */
export function mapOf(pixels: { width: number; height: number; data: Uint8ClampedArray<ArrayBufferLike> }, lens: Lens): DepthMap {
  const { arrangement } = lens;
  const beside = arrangement === "depth-left" || arrangement === "depth-right";
  const stacked = arrangement === "depth-top" || arrangement === "depth-bottom";
  const width = beside ? pixels.width >> 1 : pixels.width;
  const height = stacked ? pixels.height >> 1 : pixels.height;
  // These are the positions of the depth and the colour of the first pixel.
  const second = beside ? 4 * width : stacked ? 4 * pixels.width * height : 0;
  const depthAt = arrangement === "depth-right" || arrangement === "depth-bottom" ? second : 0;
  const colorAt = arrangement === "depth-left" || arrangement === "depth-top" ? second : 0;
  const depth = new Float32Array(width * height);
  const colors = new Uint8Array(4 * width * height);
  const tone = toneReader(lens);
  // Videos have colours at half the resolution: colours of depth pixels at the seam are mixed with
  // the other picture, so their depth is invalid.
  const seamX = beside ? (depthAt > 0 ? 0 : width - 1) : -1;
  const seamY = stacked ? (depthAt > 0 ? 0 : height - 1) : -1;
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i++) {
      const at = 4 * (y * pixels.width + x);
      depth[i] = x === seamX || y === seamY ? 0 : tone(pixels.data, at + depthAt);
      for (let c = 0; c < 3; c++) {
        colors[4 * i + c] = pixels.data[at + colorAt + c]!;
      }
    }
  }
  const half = Math.tan((lens.fov * Math.PI) / 360);
  const up = (half * height) / width;
  return { width, height, depth, unit: unitOf(lens), colors, tangents: [-half, half, -up, up], pose: poseOf(lens) };
}

/** The number of different depths: a channel has 256 values, and six parts of the hues follow each other. */
const tones = 255;
const hues = 6 * tones;

function unitOf({ coding, near, far }: Lens): number {
  return (far - near) / (coding === "hue" ? hues : tones);
}

/** Grey values up to this one mean no depth: after compression, no pixel is completely black. */
const nothing = 6;
/**
 * Colours with a smaller difference between their strongest and weakest channel have no reliable
 * hue.
 */
const grey = 48;

/** Returns a function that reads one pixel's depth in metres, 0 for none. */
function toneReader({ coding, near, far }: Lens): (data: Uint8ClampedArray<ArrayBufferLike>, at: number) => number {
  const range = far - near;
  if (coding !== "hue") {
    return (data, at) => {
      const bright = (data[at]! + data[at + 1]! + data[at + 2]!) / 3;
      if (bright <= nothing) {
        return 0;
      }
      const share = bright / 255;
      return coding === "far-bright" ? near + range * share : far - range * share;
    };
  }
  return (data, at) => {
    const [r, g, b] = [data[at]!, data[at + 1]!, data[at + 2]!];
    const most = Math.max(r, g, b);
    const spread = most - Math.min(r, g, b);
    if (spread < grey) {
      return 0;
    }
    const sixth = most === r ? ((g - b) / spread + 6) % 6 : most === g ? (b - r) / spread + 2 : (r - g) / spread + 4;
    return near + (range * sixth) / 6;
  };
}

/**
 * Converts depth maps to points. It keeps the order in which it visits pixels: the same random
 * order for all pictures of a size.
 */
export class Unprojector {
  private order = new Uint32Array(0);

  /**
   * Fills points with the points of a map inside the box, up to a maximum. Any first part of them
   * is spread over the whole picture.
   */
  read(map: DepthMap, box: Box, most: number, into: Points): void {
    const { width, height, depth, colors, pose } = map;
    const [left, right, down, up] = map.tangents;
    const { min, max } = box;
    this.prepare(width * height);
    let n = 0;
    for (const pixel of this.order) {
      const d = depth[pixel]!;
      if (!(d > 0)) {
        continue;
      }
      const column = pixel % width;
      const row = (pixel - column) / width;
      const cx = (left + ((right - left) * (column + 0.5)) / width) * d;
      const cy = (up + ((down - up) * (row + 0.5)) / height) * d;
      const x = pose[0]! * cx + pose[4]! * cy - pose[8]! * d + pose[12]!;
      const y = pose[1]! * cx + pose[5]! * cy - pose[9]! * d + pose[13]!;
      const z = pose[2]! * cx + pose[6]! * cy - pose[10]! * d + pose[14]!;
      if (x < min[0] || x > max[0] || y < min[1] || y > max[1] || z < min[2] || z > max[2]) {
        continue;
      }
      into.positions[3 * n] = x;
      into.positions[3 * n + 1] = y;
      into.positions[3 * n + 2] = z;
      into.colors[3 * n] = colors[4 * pixel]!;
      into.colors[3 * n + 1] = colors[4 * pixel + 1]!;
      into.colors[3 * n + 2] = colors[4 * pixel + 2]!;
      if (++n === most) {
        break;
      }
    }
    into.count = n;
  }

  private prepare(pixels: number): void {
    if (this.order.length === pixels) {
      return;
    }
    this.order = Uint32Array.from({ length: pixels }, (_, i) => i);
    // This is Fisher and Yates' shuffle with a fixed sequence of numbers (Numerical Recipes'
    // generator).
    let state = 1;
    for (let i = pixels - 1; i > 0; i--) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const j = Math.floor((state / 2 ** 32) * (i + 1));
      const kept = this.order[i]!;
      this.order[i] = this.order[j]!;
      this.order[j] = kept;
    }
  }
}
