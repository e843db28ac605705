import { describe, expect, it } from "vitest";
import type { DepthMap } from "../../src/publish/depth";
import { describe as description } from "../../src/publish/publisher";
import { cameraOf, levelOf, RasterCutter, rectanglesOf } from "../../src/publish/rgbd/cutter";
import { standardQualities } from "../../src/publish/tiling";
import type { Plan } from "../../src/publish/traffic";

const plan: Plan = {
  source: { kind: "figure", seed: 0 }, codec: "rgbd", tiles: 4, qualities: standardQualities, points: 0, fps: 30, box: { min: [-2, -2, -4], max: [2, 2, 0] },
};

/** Returns a map of a board at a depth of 2 m in the middle, with something far away beside it. */
function board(): DepthMap {
  const [width, height] = [128, 96];
  const depth = Float32Array.from({ length: width * height }, (_, i) => {
    const [x, y] = [i % width, Math.floor(i / width)];
    if (x < 4) {
      return 9;
    }
    return x >= 40 && x < 88 && y >= 20 && y < 80 ? 2 : 0;
  });
  return { width, height, depth, unit: 0.001, colors: new Uint8Array(4 * width * height), tangents: [-0.8, 0.8, -0.6, 0.6], pose: [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1] };
}

describe("RasterCutter", () => {
  it("cuts the pixels inside of the box, and describes the tiles as volpeer does", () => {
    const cutter = new RasterCutter(plan);
    const map = board();
    expect(cutter.crop(map)).toBe(48 * 60);
    const tiles = cutter.learn(map)!;
    expect(tiles.map((t) => t.label)).toEqual([0, 1, 2, 3].map((i) => `camera 0, rectangle ${i}`));
    expect(tiles.reduce((sum, t) => sum + t.points, 0)).toBe(48 * 60);
    const low = Math.min(...tiles.map((t) => t.box.min[0]));
    // The board begins at column 40, and the box has a margin of a tenth of 4 m.
    expect(low).toBeCloseTo(2 * (-0.8 + (1.6 * 40.5) / 128) - 0.4, 4);
    const { codec, qualities } = description("body", plan, false, tiles);
    expect(codec).toMatchObject({ mime_type: "video/volumetric", fmtp: "codec=rgbd" });
    // 2,880 points of 8, 6 and 4 bits at a sixteenth, a quarter and all of the pixels, 30 times per second in 4 tiles.
    expect(qualities.map((q) => q.bitrate_bps)).toEqual([10_800, 32_400, 86_400]);
  });

  it("keeps the rectangles of the first map, and gives their pixels to encoders", () => {
    const cutter = new RasterCutter(plan);
    expect(cutter.learn({ ...board(), depth: new Float32Array(128 * 96) })).toBeUndefined();
    const map = board();
    cutter.crop(map);
    cutter.learn(map);
    const jobs = [0, 1, 2, 3].map((tile) => cutter.job(map, tile, [0, 2], 1, { number: 1, captured: 5 }));
    expect(jobs.map((j) => [j.left, j.top, j.columns, j.rows])).toEqual([[0, 0, 64, 48], [64, 0, 64, 48], [0, 48, 64, 48], [64, 48, 64, 48]]);
    expect(jobs.reduce((sum, j) => sum + j.depths.filter((d) => d > 0).length, 0)).toBe(48 * 60);
    expect(jobs[0]!.qualities.map((q) => [q.quality, q.level.reduction])).toEqual([[0, 2], [2, 0]]);
    cutter.give(jobs[0]!.depths, jobs[0]!.colors);
    expect(cutter.job(map, 1, [0], 1, { number: 2, captured: 6 }).depths).toBe(jobs[0]!.depths);
  });
});

describe("rectanglesOf", () => {
  it("aligns borders to 16 pixels, and covers the image", () => {
    for (const tiles of [1, 2, 4, 9]) {
      const all = rectanglesOf({ left: 33, top: 50, right: 401, bottom: 470 }, 640, 480, tiles);
      expect(all.reduce((sum, r) => sum + (r.right - r.left) * (r.bottom - r.top), 0)).toBe(640 * 480);
      expect(all.flatMap((r) => [r.left, r.top]).every((v) => v % 16 === 0)).toBe(true);
    }
    expect(() => rectanglesOf({ left: 0, top: 0, right: 1, bottom: 1 }, 1, 1, 3)).toThrow("3 rectangles, expected one of 1, 2, 4, 9");
  });
});

describe("levelOf", () => {
  const [low, mid, high] = standardQualities as [(typeof standardQualities)[0], (typeof standardQualities)[0], (typeof standardQualities)[0]];
  it("has the qualities of volpeer, whole units of coarse cameras, and coarser steps for a slow uplink", () => {
    expect([low, mid, high].map((q) => levelOf(q, 1e-5, 1))).toEqual([
      { reduction: 2, step: 0.003, colorQuality: 75 }, { reduction: 1, step: 0.0015, colorQuality: 75 }, { reduction: 0, step: 0.00065, colorQuality: 80 },
    ]);
    expect([low, mid, high].map((q) => levelOf(q, 0.001, 1).step)).toEqual([0.003, 0.002, 0.001]);
    expect(levelOf(low, 1e-5, 0.5)).toEqual({ reduction: 2, step: 0.006, colorQuality: 38 });
  });
});

describe("cameraOf", () => {
  it("sees the pixels of a map where the map does", () => {
    const map = board();
    const { fx, fy, cx, cy } = cameraOf(map);
    expect((0 - cx) / fx).toBeCloseTo(-0.8 + 0.8 / 128, 6);
    // Rows count from the top, and y points down.
    expect((0 - cy) / fy).toBeCloseTo(-(0.6 - 0.6 / 96), 6);
  });
});
