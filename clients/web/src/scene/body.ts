// The place of a captured person in the publication's coordinates, and its stand on the floor.

import type { Box } from "../signal/messages";

/** A person as measured from points, in metres of the publication. */
export interface Body {
  /** The middle of the head, x and z. */
  middle: [number, number];
  low: number;
  top: number;
  /** The extent from the middle, in x and in z. */
  half: [number, number];
}

/** Points below and above these shares of the heights are outliers: background that was not removed. */
const lowShare = 0.005;
const topShare = 0.998;
/** The same to each side, where desks and chairs may be beyond. */
const sideShare = 0.06;
/** The head is in this upper share of the height. */
const headShare = 0.3;

/** A person is at least this high; less is a part of a person, as of a seated one in front of a camera. */
const standingHeight = 1.3;
/** The height of the head of a seated person, in metres above the floor. */
const seatedTop = 1.32;
/** The height over which a part of a person fades out at its lower end, in metres. */
const fading = 0.16;

/** Returns the body of sampled points x, y, z; undefined without points. */
export function bodyOf(samples: readonly number[]): Body | undefined {
  const count = Math.floor(samples.length / 3);
  if (count === 0) {
    return undefined;
  }
  const along = (axis: number, above = -Infinity): ((share: number) => number) => {
    const values = Array.from({ length: count }, (_, i) => i).filter((i) => samples[3 * i + 1]! >= above).map((i) => samples[3 * i + axis]!);
    const sorted = Float32Array.from(values).sort();
    return (share) => sorted[Math.min(Math.floor(share * sorted.length), sorted.length - 1)]!;
  };
  const y = along(1);
  const [low, top] = [y(lowShare), y(topShare)];
  // The head: desks and arms are lower.
  const head = top - headShare * (top - low);
  const middle = [along(0, head)(0.5), along(2, head)(0.5)] as [number, number];
  const half = [0, 2].map((axis, i) => {
    const values = along(axis);
    return Math.max(values(1 - sideShare) - middle[i]!, middle[i]! - values(sideShare));
  }) as [number, number];
  return { middle, low, top, half };
}

/** Half the width of a person: boxes have room for gestures. */
const usualHalf = 0.4;

/** Returns the body in the boxes of a publication; undefined without boxes. */
export function bodyOfBoxes(boxes: readonly Box[]): Body | undefined {
  if (boxes.length === 0) {
    return undefined;
  }
  const min = [0, 1, 2].map((axis) => Math.min(...boxes.map((b) => b.min[axis]!)));
  const max = [0, 1, 2].map((axis) => Math.max(...boxes.map((b) => b.max[axis]!)));
  return {
    middle: [(min[0]! + max[0]!) / 2, (min[2]! + max[2]!) / 2], low: min[1]!, top: max[1]!,
    half: [Math.min((max[0]! - min[0]!) / 2, usualHalf), Math.min((max[2]! - min[2]!) / 2, usualHalf)],
  };
}

export interface Stand {
  /** The height that is added to the points. */
  lift: number;
  /** The heights in the room between which the body fades out at its lower end; undefined for a whole person. */
  fade: [number, number] | undefined;
}

/**
 * Returns the stand of a body on the floor. The lowest points of a whole person are on the floor. A
 * part of a person has its head at the height of a seated one, and fades out at its lower end.
 */
export function standOf({ low, top }: Body): Stand {
  const height = top - low;
  if (height >= standingHeight) {
    return { lift: -low, fade: undefined };
  }
  const bottom = seatedTop - height;
  return { lift: bottom - low, fade: [bottom, bottom + Math.min(fading, height / 4)] };
}

/** A camera counts as in front of a person if cameras agree on the direction to this extent. */
const agreement = 0.5;

/**
 * Returns the angle about the vertical by which a person looks away from +z, towards the cameras that
 * captured it: people face cameras.
 */
export function facing({ middle }: Body, cameras: readonly (readonly number[])[]): number {
  let [x, z] = [0, 0];
  for (const camera of cameras) {
    const [dx, dz] = [camera[0]! - middle[0], camera[2]! - middle[1]];
    const length = Math.hypot(dx, dz) || 1;
    x += dx / length / cameras.length;
    z += dz / length / cameras.length;
  }
  return Math.hypot(x, z) < agreement ? 0 : Math.atan2(x, z);
}
