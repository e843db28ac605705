import { describe, expect, it } from "vitest";
import { Adaptation } from "../../src/publish/adaptation";
import { sentencesOf } from "../../src/publish/live";
import type { State } from "../../src/publish/figures";
import { figureBox } from "../../src/publish/figure/figure";
import { standardQualities } from "../../src/publish/tiling";

/** The rates of three complete qualities in bit/s. */
const full = [1e6, 2e6, 4e6];

/** Simulates uplinks for the given times, and returns the remaining output after each. */
function through(...uplinks: [seconds: number, bps: number][]): { qualities: number; share: number; told: number }[] {
  const adaptation = new Adaptation(3);
  const out: { qualities: number; share: number; told: number }[] = [];
  let now = 0;
  for (const [seconds, bps] of uplinks) {
    for (const end = now + 1000 * seconds; now < end; now += 500) {
      const { qualities, share } = adaptation.current;
      const rates = full.map((rate, q) => (q < qualities ? rate * share : 0));
      const offered = rates.reduce((sum, r) => sum + r, 0);
      const fits = Math.min(1, bps / offered);
      adaptation.step(now, { rates, sent: 10 * fits, dropped: 10 * (1 - fits), carried: fits < 1 ? bps : undefined, queued: 0, stalled: 0 });
    }
    out.push({ ...adaptation.current, told: adaptation.estimate });
  }
  return out;
}

describe("Adaptation", () => {
  it("sends everything where everything fits", () => {
    expect(through([20, 1e9])).toEqual([{ qualities: 3, share: 1, told: 0 }]);
  });

  it("gives up the highest qualities first, then points", () => {
    const [narrow, narrower] = through([1, 4e6], [1, 0.5e6]);
    expect(narrow).toMatchObject({ qualities: 2, share: 1, told: 4e6 });
    expect(narrower!.qualities).toBe(1);
    expect(narrower!.share).toBeGreaterThan(0.3);
    expect(narrower!.share).toBeLessThanOrEqual(0.5);
  });

  it("comes back when there is room, step by step", () => {
    const [, back] = through([2, 0.3e6], [90, 1e9]);
    expect(back).toMatchObject({ qualities: 3, share: 1 });
  });

  it("tries ever more rarely what does not fit", () => {
    const adaptation = new Adaptation(3);
    let tries = 0;
    for (let now = 0; now < 120_000; now += 500) {
      const before = adaptation.current.qualities;
      const tooMuch = before === 3;
      adaptation.step(now, { rates: full.map((r, q) => (q < before ? r : 0)), sent: 10, dropped: tooMuch ? 5 : 0, carried: tooMuch ? 4e6 : undefined, queued: 0, stalled: 0 });
      tries += adaptation.current.qualities > before ? 1 : 0;
    }
    expect(tries).toBeGreaterThanOrEqual(4);
    expect(tries).toBeLessThanOrEqual(8);
  });

  it("waits for what is on its way before it gives up more", () => {
    const adaptation = new Adaptation(3);
    const decisions: object[] = [];
    // 250 kB need two seconds at 1 Mbit/s, in which all other frames are dropped.
    for (let now = 0; now < 2500; now += 500) {
      decisions.push(adaptation.step(now, { rates: [0.6e6, 2e6, 4e6], sent: 1, dropped: 9, carried: 1e6, queued: 250_000 - now * 125, stalled: 0 }));
    }
    expect(decisions).toEqual(Array(5).fill({ qualities: 1, share: 1 }));
    // A rate that is still too high afterwards causes a reduction.
    expect(adaptation.step(2500, { rates: [0.6e6, 0, 0], sent: 1, dropped: 9, carried: 0.5e6, queued: 0, stalled: 0 }).share).toBeLessThan(1);
  });

  it("gives up nothing where a page is late and its uplink carries twice as much", () => {
    const adaptation = new Adaptation(3);
    adaptation.step(0, { rates: full, sent: 10, dropped: 10, carried: 20e6, queued: 0, stalled: 0 });
    expect(adaptation.current).toEqual({ qualities: 3, share: 1 });
    // With almost sufficient capacity, one step down is enough.
    adaptation.step(500, { rates: full, sent: 10, dropped: 10, carried: 9e6, queued: 0, stalled: 0 });
    expect(adaptation.current).toEqual({ qualities: 2, share: 1 });
  });

  it("falls back to the lowest quality while nothing leaves, with all its points, and climbs from there step by step", () => {
    const adaptation = new Adaptation(3);
    const decisions: string[] = [];
    let last = "";
    for (let now = 0; now < 40_000; now += 500) {
      // Nothing leaves from 1 s to 21 s; for the first two seconds after that, the rate still
      // contains the stall.
      const gone = now > 1000 && now < 21_000;
      const after = now >= 21_000 && now < 22_500;
      const dropped = gone ? 15 : after ? 5 : 0;
      const carried = gone ? 40e6 / (now - 1000) : after ? 13e3 : undefined;
      const { qualities, share } = adaptation.step(now, { rates: full, sent: gone ? 0 : 15, dropped, carried: gone && now < 3000 ? undefined : carried, queued: 32_000, stalled: gone ? now - 1000 : 0 });
      if (`${qualities} ${share}` !== last) {
        last = `${qualities} ${share}`;
        decisions.push(`${now / 1000} s: ${last}`);
      }
    }
    expect(decisions).toEqual(["0 s: 3 1", "3 s: 1 1", "22.5 s: 2 1", "25.5 s: 3 1"]);
  });
});

describe("sentencesOf", () => {
  const quality = { wanted: 1, taken: 1, fps: 10, bps: 1e6, points: 10, milliseconds: 1 };
  const state: State = {
    ready: true, live: true, qualities: [{ ...quality, name: "low" }, { ...quality, name: "high", wanted: 0 }], fps: 10, skipped: 0, bps: 2e6, dropped: 0, givenUp: [], share: 1,
    carried: 0,
  };
  const plan = { source: { kind: "figure", seed: 1 }, box: figureBox, tiles: 1, qualities: standardQualities, points: 10, fps: 10 } as const;

  it("says who is there and what they take", () => {
    expect(sentencesOf(state, plan, [])).toEqual(["Nobody else is here yet."]);
    expect(sentencesOf(state, plan, ["ada"])).toEqual(["ada is here. Received qualities: low."]);
    expect(sentencesOf(state, plan, ["a", "b", "c", "d", "e"])[0]).toContain("a, b, c and 2 others are here.");
  });

  it("says what holds things up", () => {
    expect(sentencesOf({ ...state, givenUp: ["high"], share: 0.5, carried: 3e6 }, plan, [])[1]).toBe(
      "Your uplink of 3.0 Mbit/s is too slow for high, and the others have 50 % of their points. More is tried periodically.",
    );
    expect(sentencesOf({ ...state, skipped: 4 }, plan, [])[1]).toContain("encodes too slowly");
  });
});
