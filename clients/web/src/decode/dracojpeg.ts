import { Images } from "./images";
import { checkImage, Tables } from "./jpeg";
import { DecodeError, type Decoder, type PointPool, type Points } from "./points";

const headerBytes = 5;
/**
 * Colours are in squares of 16×16 pixels, at most 16 in a row; in a square they follow a Hilbert
 * curve.
 */
const edge = 16;
const squarePoints = edge * edge;
const mostAcross = 16;

/** The pixel of each point of a square, as row × edge + column. */
const curve = Uint8Array.from({ length: squarePoints }, (_, i) => {
  let x = 0;
  let y = 0;
  for (let size = 1, left = i; size < edge; size *= 2, left >>= 2) {
    const right = (left >> 1) & 1;
    const up = (left ^ right) & 1;
    if (up === 0) {
      if (right === 1) {
        x = size - 1 - x;
        y = size - 1 - y;
      }
      [x, y] = [y, x];
    }
    x += size * right;
    y += size * up;
  }
  return y * edge + x;
});

/**
 * Decodes "drcj": geometry by Draco, and colours as a JPEG image in the order of the points; see
 * package pkg/codec/dracojpeg.
 */
export class DracoJPEG implements Decoder {
  private readonly tables = new Tables();
  private readonly images = new Images("draco+jpeg");

  constructor(private readonly geometry: Decoder) {}

  announced(data: Uint8Array): number {
    return this.geometry.announced(split(data).geometry);
  }

  async decode(data: Uint8Array, pool: PointPool): Promise<Points> {
    const { geometry, quality, image } = split(data);
    const { across, width, height } = layoutOf(this.geometry.announced(geometry));
    if (quality > 0) {
      checkImage("draco+jpeg", image, width, height);
    } else if (image.length > 0) {
      throw new DecodeError(`draco+jpeg: ${image.length} bytes behind the geometry of a frame without colours, expected none`);
    }
    const points = await this.geometry.decode(geometry, pool);
    if (quality > 0) {
      try {
        await this.paint(points, image, { quality, across, width, height });
      } catch (error) {
        pool.give(points);
        throw error;
      }
    }
    return points;
  }

  /** Reads the colours from an image that passed checkImage. */
  private async paint(points: Points, image: Uint8Array, { quality, across, width, height }: Image): Promise<void> {
    const pixels = await this.images.decode({ data: this.tables.complete(image, quality), type: "image/jpeg" }, width, height);
    for (let i = 0; i < points.count; i++) {
      const square = Math.floor(i / squarePoints);
      const pixel = curve[i % squarePoints]!;
      const row = Math.floor(square / across) * edge + (pixel >> 4);
      const at = 4 * (row * width + (square % across) * edge + (pixel & 15));
      points.colors[3 * i] = pixels[at]!;
      points.colors[3 * i + 1] = pixels[at + 1]!;
      points.colors[3 * i + 2] = pixels[at + 2]!;
    }
  }
}

/** The size of an image in pixels and in squares per row. */
interface Image {
  quality: number;
  across: number;
  width: number;
  height: number;
}

/**
 * Returns the squares and pixels of the image for a number of points. The maximum of a frame,
 * 4,194,304 points, has 256×16,384 pixels.
 */
function layoutOf(count: number): Omit<Image, "quality"> {
  const squares = Math.ceil(count / squarePoints);
  const across = Math.min(squares, mostAcross);
  return { across, width: across * edge, height: Math.ceil(squares / across) * edge };
}

/** Splits a frame into its parts. */
function split(data: Uint8Array): { geometry: Uint8Array; quality: number; image: Uint8Array } {
  if (data.length < headerBytes) {
    throw new DecodeError(`draco+jpeg: ${data.length} bytes, expected at least ${headerBytes}`);
  }
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const size = view.getUint32(0, true);
  const quality = view.getUint8(4);
  if (size < 1 || size > data.length - headerBytes || quality > 100) {
    throw new DecodeError(`draco+jpeg: ${size} bytes of geometry in ${data.length}, colours of quality ${quality}`);
  }
  const end = headerBytes + size;
  return { geometry: data.subarray(headerBytes, end), quality, image: data.subarray(end) };
}
