import { type Head, headBytes, parseHead, place } from "./head";
import { boundPoints, DecodeError, type Decoder, type PointPool, type Points, whiten } from "./points";

/** Decodes "raw1": positions in steps of a box, then colours; see package pkg/codec. */
export const raw = {
  announced(data: Uint8Array): number {
    return parse(data).count;
  },

  decode(data: Uint8Array, pool: PointPool): Points {
    const head = parse(data);
    const { count, width, colorless } = head;
    const points = pool.take(count);
    let at = headBytes;
    const coordinate = (): number => {
      let q = 0;
      for (let b = 0; b < width; b++) {
        q += data[at++]! * 2 ** (8 * b);
      }
      return q;
    };
    for (let i = 0; i < count; i++) {
      place(points, i, head, coordinate(), coordinate(), coordinate());
    }
    if (colorless) {
      whiten(points);
    } else {
      points.colors.set(data.subarray(at));
    }
    return points;
  },
} satisfies Decoder;

/** Reads the head with the bytes per coordinate, and compares the frame's length with it. */
function parse(data: Uint8Array): Head & { width: number } {
  const head = parseHead("raw", data);
  const count = boundPoints("raw", head.count, data.length);
  const width = Math.ceil(head.bits / 8);
  const expected = headBytes + 3 * count * (width + (head.colorless ? 0 : 1));
  if (data.length !== expected) {
    throw new DecodeError(`raw: ${data.length} bytes for ${count} points, expected ${expected}`);
  }
  return { ...head, width };
}
