import { describe, expect, it } from "vitest";
import { boxOf, type DepthMap, mapOf, Unprojector, usualLens } from "../../src/publish/depth";
import { explain } from "../../src/publish/camera";
import { mapOfView } from "../../src/publish/xr";

const lens = { ...usualLens, near: 1, far: 3, fov: 90, height: 1 };

/** Returns a picture with the pixels of paint. */
function picture(width: number, height: number, paint: (x: number, y: number) => [number, number, number]) {
  const data = new Uint8ClampedArray(4 * width * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      data.set([...paint(x, y), 255], 4 * (y * width + x));
    }
  }
  return { width, height, data };
}

describe("mapOf", () => {
  it("finds depth and colour side by side, either way round, and above each other", () => {
    const grey = (x: number, y: number): [number, number, number] => [100 + x + 10 * y, 100 + x + 10 * y, 100 + x + 10 * y];
    const color = (x: number, y: number): [number, number, number] => [x, y, 200];
    const maps = [
      mapOf(picture(8, 3, (x, y) => (x < 4 ? grey(x, y) : color(x - 4, y))), { ...lens, arrangement: "depth-left" }),
      mapOf(picture(8, 3, (x, y) => (x < 4 ? color(x, y) : grey(x - 4, y))), { ...lens, arrangement: "depth-right" }),
      mapOf(picture(4, 6, (x, y) => (y < 3 ? grey(x, y) : color(x, y - 3))), { ...lens, arrangement: "depth-top" }),
      mapOf(picture(4, 6, (x, y) => (y < 3 ? color(x, y) : grey(x, y - 3))), { ...lens, arrangement: "depth-bottom" }),
    ];
    for (const map of maps) {
      expect([map.width, map.height]).toEqual([4, 3]);
      expect(map.depth[6]).toBeCloseTo(3 - (2 * 112) / 255, 5);
      expect([...map.colors.subarray(4 * 6, 4 * 6 + 3)]).toEqual([2, 1, 200]);
    }
    // Depth next to colour is invalid.
    expect(maps.map((map) => [...map.depth].flatMap((d, i) => (d === 0 ? [i] : [])).join())).toEqual(["3,7,11", "0,4,8", "8,9,10,11", "0,1,2,3"]);
  });

  it.each([
    ["near-bright", [255, 255, 255], 1], ["near-bright", [51, 51, 51], 2.6], ["near-bright", [0, 0, 0], 0], ["far-bright", [255, 255, 255], 3], ["far-bright", [2, 2, 2], 0],
    ["hue", [255, 0, 0], 1], ["hue", [0, 255, 0], 1 + 2 / 3], ["hue", [0, 0, 255], 1 + 4 / 3], ["hue", [90, 90, 90], 0],
  ] as const)("reads %s %j as %f m", (coding, pixel, metres) => {
    const map = mapOf(picture(1, 1, () => [...pixel]), { ...lens, arrangement: "depth-only", coding });
    expect(map.depth[0]).toBeCloseTo(metres, 5);
  });
});

describe("Unprojector", () => {
  const read = (map: DepthMap, most = 1e6) => {
    const into = { count: 0, positions: new Float32Array(3 * map.depth.length), colors: new Uint8Array(3 * map.depth.length) };
    new Unprojector().read(map, boxOf(lens, map.width / map.height), most, into);
    return into;
  };

  it("puts a wall where it stands, as wide as it is seen, and the right way round", () => {
    // At 90°, a wall at 2 m is 4 m wide in the picture; the camera is at 1 m, 2 m in front of the
    // middle of its range.
    const map = mapOf(picture(40, 20, (x, y) => [128, x * 6, y * 12]), { ...lens, arrangement: "depth-only", coding: "far-bright" });
    map.depth.fill(2);
    const points = read(map);
    expect(points.count).toBe(800);
    for (let i = 0; i < points.count; i++) {
      const [x, y, z] = points.positions.subarray(3 * i, 3 * i + 3);
      expect(z).toBeCloseTo(0, 5);
      const [column, row] = [points.colors[3 * i + 1]! / 6, points.colors[3 * i + 2]! / 12];
      expect(x).toBeCloseTo(-2 + (column + 0.5) / 10, 4);
      expect(y).toBeCloseTo(1 + 1 - (row + 0.5) / 10, 4);
    }
  });

  it("leaves out what has no depth or is outside, and spreads what it keeps", () => {
    const map = mapOf(picture(20, 20, () => [128, 0, 0]), { ...lens, arrangement: "depth-only" });
    map.depth.forEach((_, i) => (map.depth[i] = i < 100 ? 0 : i < 200 ? 9 : 2));
    expect(read(map).count).toBe(200);
    const some = read(map, 50);
    expect(some.count).toBe(50);
    const rows = new Set(Array.from({ length: 50 }, (_, i) => some.positions[3 * i + 1]!.toFixed(3)));
    expect(rows.size).toBeGreaterThan(7);
  });
});

describe("mapOfView", () => {
  it("reads what WebXR tells of a view", () => {
    // A symmetric view of 90° in both directions, along -z from a height of 1.5 m.
    const projectionMatrix = Float32Array.of(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, -1, -1, 0, 0, -0.2, 0);
    const matrix = Float32Array.of(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1.5, 0, 1);
    const map = mapOfView({ getDepthInMeters: (x, y) => 1 + x + 10 * y }, { projectionMatrix, transform: { matrix } }, { width: 2, height: 2 }, undefined);
    expect([...map.depth]).toEqual([3.75, 4.25, 8.75, 9.25]);
    expect(map.tangents).toEqual([-1, 1, -1, 1]);
    expect(map.pose[13]).toBe(1.5);
    expect(map.pose[14]).toBeCloseTo(1.3, 6);
    expect(map.colors).toHaveLength(16);
  });
});

describe("explain", () => {
  it.each([["NotAllowedError", "was not allowed"], ["NotFoundError", "There is no camera"], ["NotReadableError", "another program"], ["Other", "cannot be used: why"]])(
    "says what to do about %s", (name, words) => {
      expect(explain(new DOMException("why", name), "camera").message).toContain(words);
    },
  );
});
