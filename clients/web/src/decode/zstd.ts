import { headBytes, type Head, parseHead, place } from "./head";
import { boundPoints, DecodeError, type Decoder, type PointPool, type Points, whiten } from "./points";
import { contentSize, decompress, ZstandardError } from "./zstandard";

/** The number of most significant bits of a coordinate that are part of the curve. */
const curveBits = 14;
const curveHalf = 2 ** 21;

/** The bytes per point of each plane, in the order of the planes; see package pkg/codec/zstd. */
interface Layout {
  place: number;
  below: number;
  /** The number of bits of a coordinate below the curve. */
  belowBits: number;
}

/**
 * Decodes "zstd": points along a Morton curve, as differences compressed with Zstandard. It keeps
 * its working memory.
 */
export class Zstd implements Decoder {
  private memory = new Uint8Array(0);

  announced(data: Uint8Array): number {
    return boundPoints("zstd", parseHead("zstd", data).count, data.length);
  }

  decode(data: Uint8Array, pool: PointPool): Points {
    const head = parseHead("zstd", data);
    boundPoints("zstd", head.count, data.length);
    const { count, bits, colorless } = head;
    const belowBits = Math.max(0, bits - curveBits);
    const layout = { place: Math.ceil((3 * Math.min(bits, curveBits)) / 8), below: Math.ceil(belowBits / 8), belowBits };
    const planes = this.decompress(data.subarray(headBytes), count * (layout.place + 3 * layout.below + (colorless ? 0 : 3)));
    const points = pool.take(count);
    try {
      readPositions(points, planes, head, layout);
    } catch (error) {
      pool.give(points);
      throw error;
    }
    if (colorless) {
      whiten(points);
    } else {
      readColors(points, planes.subarray(count * (layout.place + 3 * layout.below)));
    }
    return points;
  }

  private decompress(data: Uint8Array, size: number): Uint8Array {
    try {
      const announced = contentSize(data);
      if (announced !== size) {
        throw new DecodeError(`zstd: ${announced} bytes are compressed, expected ${size}`);
      }
      if (this.memory.length < size) {
        this.memory = new Uint8Array(Math.ceil(size * 1.25));
      }
      const planes = this.memory.subarray(0, size);
      decompress(data, planes);
      return planes;
    } catch (error) {
      throw error instanceof ZstandardError ? new DecodeError(`zstd: ${error.message}`) : error;
    }
  }
}

function readPositions(points: Points, planes: Uint8Array, head: Head, { place: bytes, below, belowBits }: Layout): void {
  const { count, bits } = head;
  const end = 2 ** (3 * Math.min(bits, curveBits));
  const scale = 2 ** belowBits;
  let here = 0;
  for (let i = 0; i < count; i++) {
    for (let plane = 0, weight = 1; plane < bytes; plane++, weight *= 256) {
      here += planes[plane * count + i]! * weight;
    }
    if (here >= end) {
      throw new DecodeError(`zstd: point ${i} is beyond the end of the curve`);
    }
    const high = Math.floor(here / curveHalf);
    const low = here % curveHalf;
    const coordinate = (axis: number): number => {
      const above = gathered(high >> axis) * 128 + gathered(low >> axis);
      let fine = 0;
      for (let plane = 0, weight = 1; plane < below; plane++, weight *= 256) {
        fine += planes[(bytes + axis * below + plane) * count + i]! * weight;
      }
      return above * scale + fine;
    };
    place(points, i, head, coordinate(0), coordinate(1), coordinate(2));
  }
}

/** Returns every third bit of a number of 21 bits, starting at the lowest. */
function gathered(v: number): number {
  let x = v & 0x49249;
  x = (x | (x >> 2)) & 0xc30c3;
  x = (x | (x >> 4)) & 0xf00f;
  return (x | (x >> 8)) & 0x7f;
}

function readColors(points: Points, planes: Uint8Array): void {
  const { count, colors } = points;
  let red = 0;
  let green = 0;
  let blue = 0;
  for (let i = 0; i < count; i++) {
    const more = planes[i]!;
    red = (red + planes[count + i]! + more) & 255;
    green = (green + more) & 255;
    blue = (blue + planes[2 * count + i]! + more) & 255;
    colors[3 * i] = red;
    colors[3 * i + 1] = green;
    colors[3 * i + 2] = blue;
  }
}
