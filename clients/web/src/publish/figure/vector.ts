// Vectors, rotations and noise for the demonstration figure.

export type Vector = readonly [number, number, number];

export const add = (a: Vector, b: Vector): Vector => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
export const sub = (a: Vector, b: Vector): Vector => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
export const scale = (a: Vector, f: number): Vector => [a[0] * f, a[1] * f, a[2] * f];
export const dot = (a: Vector, b: Vector): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const length = (a: Vector): number => Math.sqrt(dot(a, a));
export const unit = (a: Vector): Vector => scale(a, 1 / length(a));
export const mirrored = (a: Vector): Vector => [-a[0], a[1], a[2]];
export const toward = (a: Vector, b: Vector, share: number): Vector => add(a, scale(sub(b, a), share));
export const cross = (a: Vector, b: Vector): Vector => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];

/** A rotation about an axis of length 1, by an angle in radians. */
export interface Turn {
  axis: Vector;
  angle: number;
}

/** A rigid motion: the rows of a 3×3 matrix, then the translation. */
export type Motion = Float64Array;

export function still(): Motion {
  return Float64Array.of(1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0);
}

/** Returns the rotation about a point by a fraction of the angle (Rodrigues' formula). */
export function about(pivot: Vector, { axis: [x, y, z], angle }: Turn, share: number): Motion {
  const c = Math.cos(angle * share);
  const s = Math.sin(angle * share);
  const t = 1 - c;
  const m = Float64Array.of(
    t * x * x + c, t * x * y - s * z, t * x * z + s * y,
    t * x * y + s * z, t * y * y + c, t * y * z - s * x,
    t * x * z - s * y, t * y * z + s * x, t * z * z + c,
    0, 0, 0,
  );
  for (let row = 0; row < 3; row++) {
    m[9 + row] = pivot[row]! - (m[3 * row]! * pivot[0] + m[3 * row + 1]! * pivot[1] + m[3 * row + 2]! * pivot[2]);
  }
  return m;
}

/** Returns the motion that applies b first, then a. */
export function after(a: Motion, b: Motion): Motion {
  const m = new Float64Array(12);
  for (let row = 0; row < 3; row++) {
    const [x, y, z] = [a[3 * row]!, a[3 * row + 1]!, a[3 * row + 2]!];
    for (let column = 0; column < 3; column++) {
      m[3 * row + column] = x * b[column]! + y * b[3 + column]! + z * b[6 + column]!;
    }
    m[9 + row] = x * b[9]! + y * b[10]! + z * b[11]! + a[9 + row]!;
  }
  return m;
}

/**
 * Returns a generator of random numbers in 0..1 with a fixed sequence for each seed (mulberry32).
 */
export function random(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns a number in 0..1 for a position on a lattice. */
export function hash(seed: number, channel: number, lattice: number): number {
  let x = Math.imul(seed, 0x9e3779b1) ^ Math.imul(channel + 1, 0x85ebca6b) ^ Math.imul(lattice, 0xc2b2ae35);
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return ((x ^ (x >>> 16)) >>> 0) / 2 ** 32;
}

/** Returns a function that rises from 0 at 0 to 1 at 1, with slope 0 at both ends. */
export function smoothStep(x: number): number {
  const t = Math.min(Math.max(x, 0), 1);
  return t * t * t * (t * (6 * t - 15) + 10);
}

export const ramp = (from: number, to: number, x: number): number => smoothStep((x - from) / (to - from));
export const mix = (a: number, b: number, share: number): number => a + (b - a) * share;

/**
 * Returns noise between -1 and 1 that moves smoothly from one random value to the next, once per
 * unit of x.
 */
export function wander(seed: number, channel: number, x: number): number {
  const cell = Math.floor(x);
  return 2 * mix(hash(seed, channel, cell), hash(seed, channel, cell + 1), smoothStep(x - cell)) - 1;
}

/** Returns noise between -1 and 1 in space, for irregular surfaces. */
export function texture(seed: number, channel: number, p: Vector, size: number): number {
  const cell = p.map((v) => Math.floor(v / size));
  const part = p.map((v, axis) => smoothStep(v / size - cell[axis]!));
  let sum = 0;
  for (let corner = 0; corner < 8; corner++) {
    let weight = 1;
    let lattice = 0;
    for (let axis = 0; axis < 3; axis++) {
      const bit = (corner >> axis) & 1;
      lattice = Math.imul(lattice, 1_000_003) + cell[axis]! + bit;
      weight *= bit ? part[axis]! : 1 - part[axis]!;
    }
    sum += weight * hash(seed, channel, lattice);
  }
  return 2 * sum - 1;
}
