import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DecodeError, PointPool } from "../../src/decode/points";
import { Grid } from "../../src/decode/rgbd/grid";
import { identity, mostCodeOf, parseHead } from "../../src/decode/rgbd/head";
import { PlaneDecoder } from "../../src/decode/rgbd/planes";
import type { Camera } from "../../src/decode/rgbd/raster";
import { RGBD } from "../../src/decode/rgbd/rgbd";
import { FrameEncoder } from "../../src/publish/rgbd/frames";
import { writeHead } from "../../src/publish/rgbd/head";
import { Painter } from "../../src/publish/rgbd/painter";
import { PlaneEncoder } from "../../src/publish/rgbd/planes";
import type { View } from "../../src/publish/rgbd/reducer";
import { bytesOf, FakeImages, rasterVectors } from "./vectors";

/** A busy machine needs more than the default time limit. */
vi.setConfig({ testTimeout: 60_000 });

const images = new FakeImages();

beforeEach(() => {
  images.decoded = 0;
  images.install();
});
afterEach(() => vi.unstubAllGlobals());

/** Returns the FNV-1a sum of numbers. */
function sumOf(numbers: Float32Array): number {
  let sum = 0x811c9dc5;
  for (const byte of new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)) {
    sum = Math.imul(sum ^ byte, 0x01000193) >>> 0;
  }
  return sum;
}

describe("RGBD", () => {
  it("decodes the vectors of Go's decoder to the same depths and positions", async () => {
    const decoder = new RGBD();
    const pool = new PointPool();
    let decoded = 0;
    for (const v of await rasterVectors()) {
      if (v.error) {
        continue;
      }
      decoded++;
      const data = bytesOf(v.data);
      const raster = await decoder.decodeRaster(data, pool);
      expect([raster.left, raster.top, raster.columns, raster.rows], v.name).toEqual(v.rect);
      expect(sumOf(raster.depths.subarray(0, raster.columns * raster.rows)), v.name).toBe(v.depth_sum);
      expect(raster.points, v.name).toBe(v.points);
      pool.giveDepths(raster.depths);
      if (raster.colors) {
        pool.giveColors(raster.colors);
      }
      const points = await decoder.decode(data, pool);
      expect(points.count, v.name).toBe(v.points);
      const positions = points.positions.subarray(0, 3 * points.count);
      if (!v.distorted) {
        expect(sumOf(positions), v.name).toBe(v.position_sum);
      }
      for (let axis = 0; axis < 3; axis++) {
        const mean = positions.filter((_, i) => i % 3 === axis).reduce((sum, p) => sum + p, 0) / points.count;
        expect(Math.abs(mean - v.center![axis]!), v.name).toBeLessThan(1e-6);
      }
      pool.give(points);
    }
    expect(decoded).toBeGreaterThan(10);
  });

  it("refuses the frames that Go's decoder refuses, before it decodes an image", async () => {
    const decoder = new RGBD();
    const refused = (await rasterVectors()).filter((v) => v.error);
    expect(refused.length).toBeGreaterThan(10);
    for (const v of refused) {
      await expect(decoder.decode(bytesOf(v.data), new PointPool()), v.name).rejects.toThrow(DecodeError);
      await expect(decoder.decodeRaster(bytesOf(v.data), new PointPool()), v.name).rejects.toThrow(DecodeError);
    }
    expect(images.decoded).toBe(0);
  });

  it("accepts and refuses the same frames of the corpus as Go's decoder, with the same depths and positions", async () => {
    const decoder = new RGBD();
    const pool = new PointPool();
    const all = await rasterVectors("corpus");
    expect(all.length).toBeGreaterThan(50);
    for (const v of all) {
      const data = bytesOf(v.data);
      if (v.error) {
        await expect(decoder.decodeRaster(data, pool), v.name).rejects.toThrow(DecodeError);
        continue;
      }
      const raster = await decoder.decodeRaster(data, pool);
      expect(sumOf(raster.depths.subarray(0, raster.columns * raster.rows)), v.name).toBe(v.depth_sum);
      const points = await decoder.decode(data, pool);
      expect(points.count, v.name).toBe(v.points ?? 0);
      if (!v.distorted) {
        expect(sumOf(points.positions.subarray(0, 3 * points.count)), v.name).toBe(v.position_sum);
      }
    }
  });

  it("refuses every truncated frame", async () => {
    const decoder = new RGBD();
    const [whole] = await rasterVectors();
    const data = bytesOf(whole!.data);
    for (let length = 0; length < data.length; length++) {
      await expect(decoder.decodeRaster(data.subarray(0, length), new PointPool()), `${length} bytes`).rejects.toThrow(DecodeError);
    }
  });
});

describe("FrameEncoder", () => {
  it("encodes heads, masks and depths of the vectors to the bytes of Go's encoder", async () => {
    const encoder = new PlaneEncoder();
    const [decoded, again] = [new Grid(), new Grid()];
    let encoded = 0;
    for (const v of await rasterVectors()) {
      if (v.error) {
        continue;
      }
      encoded++;
      const data = bytesOf(v.data);
      const head = parseHead(data);
      const planes = data.subarray(head.bytes, head.bytes + head.planes);
      decoded.reset(head.columns, head.rows);
      new PlaneDecoder().decode(decoded, planes, head.points, mostCodeOf(head));
      again.reset(head.columns, head.rows);
      again.valid.set(decoded.valid.subarray(0, again.valid.length));
      again.codes.set(decoded.codes.subarray(0, again.codes.length));
      expect(encoder.encode(again), v.name).toEqual(planes);
      const written = new Uint8Array(200);
      expect(writeHead(written, head), v.name).toBe(head.bytes);
      expect(written.subarray(0, head.bytes), v.name).toEqual(data.subarray(0, head.bytes));
    }
    expect(encoded).toBeGreaterThan(10);
  });

  const camera: Camera = { width: 64, height: 48, fx: 50, fy: 50, cx: 31.5, cy: 23.5, distortion: undefined, pose: { rotation: identity, translation: [0, 0, 0] } };
  /** Returns a ball at about 1 m in front of nothing. */
  const ball = (): View => {
    const { width, height } = camera;
    const depths = Float32Array.from({ length: width * height }, (_, i) => {
      const r = Math.hypot((i % width) - 30, Math.floor(i / width) - 20) / 18;
      return r < 1 ? 1.2 - 0.3 * Math.sqrt(1 - r * r) : 0;
    });
    const colors = Uint8Array.from({ length: 4 * width * height }, (_, i) => (i % 4 === 0 ? 200 : 40));
    return { depths, colors, first: 0, stride: width, left: 0, top: 0, columns: width, rows: height };
  };
  /** An image of the size, in the form that checkImage permits. */
  const image = async (_: Uint8ClampedArray, width: number, height: number): Promise<Uint8Array> => {
    const frame = [0xff, 0xc0, 0, 17, 8, height >> 8, height & 255, width >> 8, width & 255, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1];
    return Uint8Array.from([0xff, 0xd8, ...frame, 0xff, 0xda, 0, 12, 3, 1, 0, 2, 0x11, 3, 0x11, 0, 63, 0, 0xff, 0xd9]);
  };

  it("gives depths back within half a step, at every reduction", async () => {
    const encoder = new FrameEncoder(image);
    for (const reduction of [0, 1, 2]) {
      const from = ball();
      const { data, points } = await encoder.encode(camera, from, { reduction, step: 0.001, colorQuality: 80 });
      const raster = await new RGBD().decodeRaster(data, new PointPool());
      expect(raster.points).toBe(points);
      const share = (points << (2 * reduction)) / from.depths.filter((d) => d > 0).length;
      expect(Math.abs(share - 1)).toBeLessThan(0.1);
      for (let y = 0; y < raster.rows; y++) {
        for (let x = 0; x < raster.columns; x++) {
          const depth = raster.depths[y * raster.columns + x]!;
          const [u, v] = [(raster.left + x) << reduction, (raster.top + y) << reduction];
          const before = from.depths[v * camera.width + u]!;
          // The pixels of a square differ at the rim of the ball.
          if (depth > 0 && before > 0) {
            expect(Math.abs(depth - before)).toBeLessThan(reduction === 0 ? 0.000501 : 0.1);
          }
        }
      }
    }
  });

  it("makes a tile without points a frame without data", async () => {
    const view = { ...ball(), columns: 4, rows: 3 };
    expect(await new FrameEncoder(image).encode(camera, view, { reduction: 0, step: 0.001, colorQuality: 80 })).toEqual({ data: new Uint8Array(0), points: 0 });
  });

  it("lengthens frames of plain walls, which need fewer bytes than their pixels may have", async () => {
    const wall = { ...camera, width: 1024, height: 768 };
    const view: View = {
      depths: new Float32Array(1024 * 768).fill(2), colors: new Uint8Array(4 * 1024 * 768).fill(128), first: 0, stride: 1024, left: 0, top: 0, columns: 1024, rows: 768,
    };
    const { data, points } = await new FrameEncoder(image).encode(wall, view, { reduction: 0, step: 0.001, colorQuality: 80 });
    expect([points, data.length]).toEqual([1024 * 768, expect.closeTo((1024 * 768 - 65_536) / 64, -2)]);
    expect((await new RGBD().decodeRaster(data, new PointPool())).points).toBe(points);
  });

  it("refuses images that receivers would refuse", async () => {
    const encoder = new FrameEncoder(async () => new Uint8Array(100));
    await expect(encoder.encode(camera, ball(), { reduction: 0, step: 0.001, colorQuality: 80 })).rejects.toThrow("no start in an image of 100 bytes");
  });

  it("gives pixels without a depth the colours of their surroundings", () => {
    const grid = new Grid();
    grid.reset(40, 16);
    const pixels = new Uint8ClampedArray(4 * 40 * 16);
    for (let x = 0; x < 4; x++) {
      grid.valid[grid.row(0) + x] = 1;
      pixels.set([100 + x, 50, 10, 255], 4 * x);
    }
    new Painter().paint(pixels, grid);
    const at = (x: number, y: number): number[] => [...pixels.subarray(4 * (y * 40 + x), 4 * (y * 40 + x) + 3)];
    // The block, its square, and the next square without depths.
    expect([at(0, 0), at(5, 3), at(15, 15), at(39, 12)]).toEqual([[100, 50, 10], [102, 50, 10], [102, 50, 10], [102, 50, 10]]);
  });
});
