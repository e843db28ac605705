import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DecodeError, PointPool } from "../../src/decode/points";
import { RGBD } from "../../src/decode/rgbd/rgbd";
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

  it("refuses every truncated frame", async () => {
    const decoder = new RGBD();
    const [whole] = await rasterVectors();
    const data = bytesOf(whole!.data);
    for (let length = 0; length < data.length; length++) {
      await expect(decoder.decodeRaster(data.subarray(0, length), new PointPool()), `${length} bytes`).rejects.toThrow(DecodeError);
    }
  });
});
