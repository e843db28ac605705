import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type HelperOrder, HelperWorkers } from "../../src/decode/helpers";
import { Labels } from "../../src/decode/labels";
import { type Helpers, Parts } from "../../src/decode/parts";
import { DecodeError, type Decoder, PointPool, type Points } from "../../src/decode/points";

const points = (count: number): Points => ({ count, positions: new Float32Array(3 * count).fill(count), colors: new Uint8Array(3 * count).fill(count) });

/** Decodes one byte, which is the number of points. */
const counting: Decoder = { announced: (data) => data[0]!, decode: (data) => points(data[0]!) };

describe("HelperWorkers", () => {
  class FakeWorker {
    static all: FakeWorker[] = [];
    orders: HelperOrder[] = [];
    ended = false;
    onmessage: ((event: { data: unknown }) => void) | undefined;
    onerror: ((event: { message?: string }) => void) | undefined;
    constructor() {
      FakeWorker.all.push(this);
    }
    postMessage(order: HelperOrder): void {
      this.orders.push(order);
    }
    terminate(): void {
      this.ended = true;
    }
  }

  beforeEach(() => {
    FakeWorker.all = [];
    vi.stubGlobal("Worker", FakeWorker);
    vi.stubGlobal("navigator", { hardwareConcurrency: 4 });
  });
  afterEach(() => vi.unstubAllGlobals());

  it("go on without one that cannot be loaded", async () => {
    const helpers = new HelperWorkers();
    expect(helpers.count).toBe(2);
    const lost = [helpers.decode(0, "drco", new Uint8Array(3)), helpers.decode(0, "drco", new Uint8Array(3))];
    const kept = helpers.decode(1, "drco", new Uint8Array(3));
    const [broken, good] = [FakeWorker.all[0]!, FakeWorker.all[1]!];
    broken.onerror!({});
    for (const promise of lost) {
      await expect(promise).rejects.toThrow("cannot be loaded");
    }
    expect([helpers.count, broken.ended]).toEqual([1, true]);
    good.onmessage!({ data: { job: 3, points: points(7) } });
    expect((await kept).count).toBe(7);
    // The remaining helper now has the first number; points of an unused number are dropped.
    void helpers.decode(0, "drco", new Uint8Array(3));
    helpers.give(1, points(1));
    expect(FakeWorker.all.length).toBe(2);
    expect(good.orders.map((o) => o.type)).toEqual(["decode", "decode"]);
    broken.onerror!({});
    expect(helpers.count).toBe(1);
  });
});

describe("Parts", () => {
  /** Parts with these numbers of points, of one byte each. */
  const frame = (...counts: number[]): Uint8Array => {
    const data = new Uint8Array(8 + 9 * counts.length);
    const view = new DataView(data.buffer);
    data.set(new TextEncoder().encode("cnt1"));
    view.setUint32(4, counts.length, true);
    counts.forEach((count, i) => {
      view.setUint32(8 + 8 * i, count, true);
      view.setUint32(12 + 8 * i, 1, true);
      data[8 + 8 * counts.length + i] = count;
    });
    return data;
  };
  const inner = new Map([["cnt1", counting]]);

  it("puts parts one behind the other", async () => {
    const whole = await new Parts(inner, undefined).decode(frame(2, 3), new PointPool());
    expect([whole.count, ...whole.colors.subarray(0, 15)]).toEqual([5, ...Array(6).fill(2), ...Array(9).fill(3)]);
  });

  it("waits for all parts where one fails, and uses the memory again", async () => {
    let own = 0;
    const slow = new Map<string, Decoder>([["cnt1", {
      announced: counting.announced,
      decode: async (data) => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        own++;
        return counting.decode(data, new PointPool());
      },
    }]]);
    const helpers: Helpers = { count: 1, decode: () => Promise.reject(new Error("it cannot be loaded")), give: () => {} };
    const pool = new PointPool();
    const given = vi.spyOn(pool, "give");
    await expect(new Parts(slow, helpers).decode(frame(2, 3, 4), pool)).rejects.toThrow("it cannot be loaded");
    expect(own).toBe(2);
    expect(given.mock.calls.at(-1)![0].count).toBe(9);
  });
});

describe("Labels", () => {
  const inner = new Map([["cnt1", counting]]);
  const decode = (data: Uint8Array): Promise<Points> => new Labels(inner).decode(data, new PointPool());
  /** One byte of points, and additional values. */
  const frame = (count: number, beside: number, rest: number): Uint8Array => {
    const data = new Uint8Array(14 + rest);
    const view = new DataView(data.buffer);
    data.set(new TextEncoder().encode("cnt1"));
    view.setUint32(4, 1, true);
    view.setUint32(8, count, true);
    data.set([beside, 5], 12);
    return data;
  };

  it.each([[0, 0], [1, 20], [3, 20]])("gives the points, whatever is beside them (%i)", async (beside, rest) => {
    expect((await decode(frame(5, beside, rest))).count).toBe(5);
  });

  it.each([
    ["a short one", frame(5, 0, 0).subarray(0, 12)],
    ["what stands behind points that have nothing beside them", frame(5, 0, 1)],
    ["what it does not know beside them", frame(5, 4, 1)],
    ["another number of points than it says", frame(6, 0, 0)],
    ["absurdly many points", frame(4_000_000, 0, 0)],
    ["points that go beyond its end", frame(5, 1, 1).subarray(0, 13)],
    ["labels of labels", frame(5, 0, 0).fill(108, 0, 4)],
  ])("refuses %s", async (_, data) => {
    await expect(decode(data)).rejects.toThrow(DecodeError);
  });
});
