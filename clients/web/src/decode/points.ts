// Decoded points, and the interfaces of decoders.

import type { Raster } from "./rgbd/raster";

export class DecodeError extends Error {}

/** Points of one tile. The arrays may be longer than necessary. */
export interface Points {
  count: number;
  /** x, y, z in metres for each point. */
  positions: Float32Array<ArrayBuffer>;
  /** red, green, blue for each point. */
  colors: Uint8Array<ArrayBuffer>;
}

/** Arrays for decoders. They are reused, and replaced by larger ones when a frame needs more. */
export class PointPool {
  private free: Points[] = [];
  private readonly freeDepths: Float32Array<ArrayBuffer>[] = [];
  private readonly freeColors: Uint8Array<ArrayBuffer>[] = [];

  /** Returns arrays with room for the given number of points. */
  take(count: number): Points {
    const at = this.free.findIndex((p) => p.positions.length >= 3 * count);
    const found = at < 0 ? undefined : this.free.splice(at, 1)[0];
    if (found) {
      found.count = count;
      return found;
    }
    // The arrays are a quarter larger than requested, so that frames of varying size fit. Arrays
    // that are too small are removed, so that the pool does not grow with every new size.
    this.free.shift();
    const room = Math.ceil(count * 1.25) + 64;
    return { count, positions: new Float32Array(3 * room), colors: new Uint8Array(3 * room) };
  }

  give(p: Points): void {
    this.free.push(p);
  }

  /** Returns an array with room for the depths of a raster. */
  takeDepths(count: number): Float32Array<ArrayBuffer> {
    return fitting(this.freeDepths, count) ?? new Float32Array(Math.ceil(count * 1.25));
  }

  giveDepths(depths: Float32Array<ArrayBuffer>): void {
    this.freeDepths.push(depths);
  }

  /** Returns an array with room for the colours of a raster, four numbers for each pixel. */
  takeColors(count: number): Uint8Array<ArrayBuffer> {
    return fitting(this.freeColors, 4 * count) ?? new Uint8Array(Math.ceil(count * 1.25) * 4);
  }

  giveColors(colors: Uint8Array<ArrayBuffer>): void {
    this.freeColors.push(colors);
  }
}

/** Removes an array of a length at least from a list and returns it. Without one, the first is removed. */
function fitting<T extends { length: number }>(free: T[], length: number): T | undefined {
  const at = free.findIndex((array) => array.length >= length);
  const [found] = free.splice(Math.max(at, 0), 1);
  return at >= 0 ? found : undefined;
}

/**
 * Decodes the points of a frame. All errors are DecodeErrors with the cause and the expected value.
 */
export interface Decoder {
  /**
   * Returns the number of points that a frame announces if boundPoints allows it. It reads only the
   * head and allocates nothing for the points.
   */
  announced(data: Uint8Array): number;
  decode(data: Uint8Array, pool: PointPool): Points | Promise<Points>;
}

/** A decoder of rasters, from which it computes the points of decode. */
export interface RasterDecoder extends Decoder {
  decodeRaster(data: Uint8Array, pool: PointPool): Promise<Raster>;
}

/** Reports whether a decoder is one of rasters. */
export function decodesRasters(decoder: Decoder | undefined): decoder is RasterDecoder {
  return decoder !== undefined && "decodeRaster" in decoder;
}

const white = 255;

/** The maximum number of points of a frame: 4,194,304 of 15 bytes each are 63 MB. */
const maxPoints = 1 << 22;
/**
 * The permitted points independent of the size of a frame, and per byte: points at equal positions
 * need almost no bytes (docs/codec.md, "Bounds").
 */
const freePoints = 65_536;
const pointsPerByte = 64;

/** Returns the bytes that a frame of this size lacks to be permitted that number of points. */
export function missingBytes(count: number, bytes: number): number {
  return Math.max(0, Math.ceil((count - freePoints) / pointsPerByte) - bytes);
}

/**
 * Checks the number of points that a frame announces against its bytes, and returns it. It must be
 * called before memory for the points is allocated.
 */
export function boundPoints(codec: string, count: number, bytes: number): number {
  const most = Math.min(maxPoints, freePoints + pointsPerByte * bytes);
  if (count < 1 || count > most) {
    throw new DecodeError(`${codec}: ${count} points in ${bytes} bytes, expected 1 to ${most}`);
  }
  return count;
}

/** Makes all points white. */
export function whiten(p: Points): void {
  p.colors.fill(white, 0, 3 * p.count);
}
