import { checkCount, DecodeError, type Decoder, type PointPool, type Points, whiten } from "./points";

const headerBytes = 32;

/** Decodes "raw1": positions in steps of a box, then colours; see package pkg/codec. */
export const raw: Decoder = {
  decode(data: Uint8Array, pool: PointPool): Points {
    if (data.length < headerBytes) {
      throw new DecodeError(`raw: ${data.length} bytes, expected at least ${headerBytes}`);
    }
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const count = view.getUint32(0, true);
    checkCount("raw", count);
    const low = [4, 8, 12].map((at) => view.getFloat32(at, true));
    const high = [16, 20, 24].map((at) => view.getFloat32(at, true));
    const bits = view.getUint8(28);
    const colorless = view.getUint8(29) === 1;
    if (bits < 1 || bits > 30) {
      throw new DecodeError(`raw: ${bits} position bits, expected 1 to 30`);
    }
    const width = Math.ceil(bits / 8);
    const expected = headerBytes + 3 * count * (width + (colorless ? 0 : 1));
    if (data.length !== expected) {
      throw new DecodeError(`raw: ${data.length} bytes for ${count} points, expected ${expected}`);
    }
    const step = Math.max(...high.map((v, axis) => v - low[axis]!)) / (2 ** bits - 1);
    const points = pool.take(count);
    let at = headerBytes;
    for (let i = 0; i < 3 * count; i++) {
      let q = 0;
      for (let b = 0; b < width; b++) {
        q += data[at++]! * 2 ** (8 * b);
      }
      points.positions[i] = low[i % 3]! + q * step;
    }
    if (colorless) {
      whiten(points);
    } else {
      points.colors.set(data.subarray(at));
    }
    return points;
  },
};
