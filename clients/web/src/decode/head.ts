// The start of frames of "raw1" and "zstd": the number of points and the grid (pkg/codec, Head).
// Numbers are little-endian.

import { DecodeError, type Points } from "./points";

export const headBytes = 32;

export interface Head {
  count: number;
  bits: number;
  colorless: boolean;
  /** The corner of the box that is the origin of positions, in metres, and the step of the grid. */
  low: [number, number, number];
  step: number;
}

export function parseHead(codec: string, data: Uint8Array): Head {
  if (data.length < headBytes) {
    throw new DecodeError(`${codec}: ${data.length} bytes, expected at least ${headBytes}`);
  }
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const corner = (at: number): [number, number, number] => [view.getFloat32(at, true), view.getFloat32(at + 4, true), view.getFloat32(at + 8, true)];
  const low = corner(4);
  const range = Math.fround(Math.max(...corner(16).map((v, axis) => Math.fround(v - low[axis]!))));
  const bits = view.getUint8(28);
  if (bits < 1 || bits > 30) {
    throw new DecodeError(`${codec}: ${bits} position bits, expected 1 to 30`);
  }
  if (!(range > 0) || !low.every(Number.isFinite) || !Number.isFinite(range)) {
    throw new DecodeError(`${codec}: a box from ${low.join(", ")} that is ${range} m long, expected more than 0`);
  }
  return { count: view.getUint32(0, true), bits, colorless: view.getUint8(29) === 1, low, step: Math.fround(range / (2 ** bits - 1)) };
}

/** Stores a point of the grid, given in steps along each axis. */
export function place(points: Points, i: number, { low, step }: Head, x: number, y: number, z: number): void {
  points.positions[3 * i] = Math.fround(x * step) + low[0];
  points.positions[3 * i + 1] = Math.fround(y * step) + low[1];
  points.positions[3 * i + 2] = Math.fround(z * step) + low[2];
}
