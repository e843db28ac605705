import { describe, expect, it } from "vitest";
import { Outflow } from "../../src/publish/outflow";

describe("Outflow", () => {
  it("knows nothing of a channel that empties at once, nor of what a page that is late is told", () => {
    const outflow = new Outflow();
    for (let at = 0; at < 3000; at += 100) {
      outflow.look(at, at, 10_000);
      outflow.look(at + 2, at + 10_000, 0);
    }
    expect(outflow.rate(3000)).toBeUndefined();
    outflow.look(3100, 13_000, 30_000);
    outflow.look(4100, 43_000, 0);
    expect(outflow.rate(4100)).toBeUndefined();
    expect(outflow.stalled(4100)).toBe(0);
  });

  it("measures from one time that something has left to the next, in however few steps", () => {
    const outflow = new Outflow();
    for (let at = 0; at <= 800; at += 100) {
      outflow.look(at, 0, 30_000);
    }
    expect(outflow.rate(800)).toBeUndefined();
    outflow.look(900, 30_000, 0);
    expect(outflow.rate(900)! / 1000).toBeCloseTo(240_000 / 900, 3);
    // The next data counts from the time when it was added.
    outflow.look(1000, 30_000, 30_000);
    for (let at = 1100; at <= 1800; at += 100) {
      outflow.look(at, 30_000, 30_000);
    }
    outflow.look(1900, 60_000, 0);
    expect(outflow.rate(1900)! / 1000).toBeCloseTo(240_000 / 900, 3);
  });

  it("falls while nothing leaves, and is never 0", () => {
    const outflow = new Outflow();
    outflow.look(0, 0, 30_000);
    outflow.look(250, 10_000, 30_000);
    const rates: number[] = [];
    const stalled: number[] = [];
    for (let at = 500; at <= 20_250; at += 250) {
      outflow.look(at, 10_000, 30_000);
      if (at % 5000 === 250) {
        rates.push(Math.round(outflow.rate(at)!));
        stalled.push(outflow.stalled(at));
      }
    }
    // At 320 kbit/s, 30 kB need 750 ms; after 5 s without progress, the rate is at most 30 kB in 5
    // s, and so on.
    expect(rates).toEqual([48_000, 24_000, 16_000, 12_000]);
    expect(stalled).toEqual([4250, 9250, 14_250, 19_250]);
    outflow.look(20_500, 20_000, 20_000);
    expect(outflow.stalled(20_500)).toBe(0);
  });
});
