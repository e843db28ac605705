import { describe, expect, it } from "vitest";
import type { Slot } from "../../src/media/slots";
import type { DecodedFrame } from "../../src/media/traffic";
import { Meters } from "../../src/viewer/meters";

const slot: Slot = { mid: "3", generation: 1, track: undefined, description: undefined, quality: 1, reason: "auto", since: 0, dropped: 0 };

function frame(number: number, at: number, skipped = 0): DecodedFrame {
  return {
    type: "frame", mid: "3", quality: 1, number, bytes: 1000, captured: at - 30, received: at - 10, decodeBegan: at - 8, decoded: at,
    points: { count: 500, positions: new Float32Array(0), colors: new Uint8Array(0) }, skipped, late: [],
  };
}

describe("Meters", () => {
  it("gives figures of the last two seconds", () => {
    const meters = new Meters();
    for (let i = 0; i < 90; i++) {
      meters.decoded(slot, frame(i, i * 100), 5);
      meters.shown("3", 4);
    }
    const f = meters.figures("3", 89 * 100)!;
    expect(f).toMatchObject({ quality: 1, points: 500, network: 25, wait: 2, decode: 8, shown: 4 });
    expect(f.fps).toBeCloseTo(10.5, 6);
    expect(f.bps).toBeCloseTo(84_000, -4);
    expect(meters.figures("3", 89 * 100 + 3000)!.fps).toBe(0);
  });

  it("continues the figures of a line on another one with the same track", () => {
    const meters = new Meters();
    meters.decoded(slot, frame(1, 100), 0);
    meters.continue("3*", "3");
    meters.decoded({ ...slot, mid: "3*" }, frame(2, 200), 0);
    meters.forget("3");
    meters.decoded({ ...slot, mid: "3*" }, frame(4, 300), 0);
    expect([meters.total.missing, meters.figures("3*", 300)?.fps, meters.figures("3", 300)]).toEqual([1, 1.5, undefined]);
    meters.continue("3*", undefined);
    expect(meters.figures("3*", 300)).toBeUndefined();
  });

  it("counts what is missing by frame numbers, but for what was skipped, and across the wrap", () => {
    const meters = new Meters();
    for (const [number, skipped] of [[0xfffffffe, 0], [0xffffffff, 0], [1, 0], [5, 2], [4, 0]] as const) {
      meters.decoded(slot, frame(number, 1000, skipped), 0);
    }
    expect(meters.total).toMatchObject({ decoded: 5, skipped: 2, missing: 2 });
  });

  it("counts a late frame as arrived", () => {
    const meters = new Meters();
    for (const [number, skipped] of [[1, 0], [3, 0], [4, 1], [5, 1]] as const) {
      meters.decoded(slot, frame(number, 1000, skipped), 0);
    }
    expect(meters.total).toMatchObject({ decoded: 4, skipped: 2, missing: 0 });
  });

  it("tells what came lately, and when a quality began", () => {
    const meters = new Meters();
    for (let i = 0; i < 10; i++) {
      meters.decoded(slot, { ...frame(i, 1000 + i * 100), quality: i < 6 ? 0 : 2 }, 0);
    }
    expect(meters.arrived("3", 450, 1900)).toBe(5000);
    expect(meters.first("3", 1000, 2)).toBe(1590);
    expect(meters.first("3", 1750, 1)).toBe(1790);
    expect(meters.first("3", 1000, 3)).toBeUndefined();
    expect(meters.arrived("4", 450, 1900)).toBe(0);
  });

  it("forgets a line that carries something else", () => {
    const meters = new Meters();
    meters.decoded(slot, frame(10, 1000), 0);
    meters.forget("3");
    expect(meters.figures("3", 1000)).toBeUndefined();
    meters.decoded(slot, frame(5000, 1000), 0);
    expect(meters.total.missing).toBe(0);
  });
});
