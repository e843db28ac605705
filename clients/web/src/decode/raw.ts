import { headBytes, parseHead, place } from "./head";
import { checkCount, DecodeError, type Decoder, type PointPool, type Points, whiten } from "./points";

/** Decodes "raw1": positions in steps of a box, then colours; see package pkg/codec. */
export const raw = {
  decode(data: Uint8Array, pool: PointPool): Points {
    const head = parseHead("raw", data);
    const { count, bits, colorless } = head;
    checkCount("raw", count);
    const width = Math.ceil(bits / 8);
    const expected = headBytes + 3 * count * (width + (colorless ? 0 : 1));
    if (data.length !== expected) {
      throw new DecodeError(`raw: ${data.length} bytes for ${count} points, expected ${expected}`);
    }
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
