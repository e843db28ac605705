import { describe, expect, it } from "vitest";
import { cwi0 } from "../../src/decode/cwi0";
import { decoderOf } from "../../src/decode/decoders";
import { DecodeError, PointPool } from "../../src/decode/points";
import { raw } from "../../src/decode/raw";

/** Two points in a box of 1 m at 8 bits, in the format of pkg/codec's raw codec. */
function rawFrame(colorless = false): Uint8Array<ArrayBuffer> {
  const data = new Uint8Array(32 + 6 + (colorless ? 0 : 6));
  const view = new DataView(data.buffer);
  view.setUint32(0, 2, true);
  [-0.5, 0, 1, 0.5, 1, 2].forEach((v, i) => view.setFloat32(4 + 4 * i, v, true));
  view.setUint8(28, 8);
  view.setUint8(29, colorless ? 1 : 0);
  data.set([0, 255, 51, 255, 0, 102], 32);
  if (!colorless) {
    data.set([1, 2, 3, 4, 5, 6], 38);
  }
  return data;
}

describe("raw", () => {
  it("puts steps of the box into metres", () => {
    const points = raw.decode(rawFrame(), new PointPool());
    expect(points.count).toBe(2);
    [-0.5, 1, 1.2, 0.5, 0, 1.4].forEach((v, i) => expect(points.positions[i]).toBeCloseTo(v, 6));
    expect([...points.colors.subarray(0, 6)]).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("gives points without colours white ones", () => {
    expect([...raw.decode(rawFrame(true), new PointPool()).colors.subarray(0, 6)]).toEqual(Array(6).fill(255));
  });

  it.each([
    ["a short one", (d: Uint8Array) => d.subarray(0, 20)],
    ["one that was cut off", (d: Uint8Array) => d.subarray(0, d.length - 1)],
    ["absurd bits", (d: Uint8Array) => { d[28] = 31; return d; }],
    ["absurdly many points", (d: Uint8Array) => { d.fill(255, 0, 4); return d; }],
  ])("refuses %s", (_, spoil) => {
    expect(() => raw.decode(spoil(rawFrame()), new PointPool())).toThrow(DecodeError);
  });
});

describe("cwi0", () => {
  const frame = (): Uint8Array<ArrayBuffer> => {
    const data = new Uint8Array(32 + 32);
    const view = new DataView(data.buffer);
    data.set(new TextEncoder().encode("cpcd"));
    view.setBigUint64(24, 32n, true);
    [1, 2, 3].forEach((v, i) => view.setFloat32(32 + 4 * i, v, true));
    data.set([7, 8, 9, 1], 44);
    view.setFloat32(48, NaN, true);
    return data;
  };

  it("leaves out points that are nowhere", () => {
    const points = cwi0.decode(frame(), new PointPool());
    expect(points.count).toBe(1);
    expect([...points.positions.subarray(0, 3), ...points.colors.subarray(0, 3)]).toEqual([1, 2, 3, 7, 8, 9]);
  });

  it("refuses what its header does not announce", () => {
    expect(() => cwi0.decode(frame().subarray(0, 60), new PointPool())).toThrow(DecodeError);
  });
});

describe("decoderOf", () => {
  it("says which codecs there are", () => {
    expect(() => decoderOf(new Map([["raw1", raw]]), "abcd")).toThrow('codec not available: "abcd", expected one of raw1');
    expect(() => decoderOf(new Map([["raw1", raw]]), "drcm")).toThrow("triangle meshes of Draco");
  });
});

describe("PointPool", () => {
  it("uses arrays again, and lets go of those that are too small", () => {
    const pool = new PointPool();
    const first = pool.take(100);
    pool.give(first);
    expect(pool.take(90).positions).toBe(first.positions);
    pool.give(first);
    const large = pool.take(1000);
    expect(large.positions.length).toBeGreaterThanOrEqual(3000);
    pool.give(large);
    expect(pool.take(100).positions).toBe(large.positions);
  });
});
