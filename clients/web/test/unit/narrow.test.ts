import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { chunkSize } from "../../src/publish/chunks";
import { figureBox } from "../../src/publish/figure/figure";
import { Publisher } from "../../src/publish/publisher";
import type { Plan, StudioOrder } from "../../src/publish/traffic";
import type { Channel } from "../../src/publish/uplink";
import { type GivenUp, OwnPublications } from "../../src/viewer/own";
import type { ClientMessage } from "../../src/signal/messages";

/**
 * The number of bytes after which Chromium reports progress; it also reports that the channel is
 * empty, and nothing else.
 */
const told = 100 * 1024;

/** A channel as in Chromium, in front of a link: its output arrives. */
class LinkedChannel implements Channel {
  readyState: RTCDataChannelState = "open";
  bufferedAmount = 0;
  bufferedAmountLowThreshold = 0;
  binaryType: BinaryType = "blob";
  onbufferedamountlow: ((event: Event) => unknown) | null = null;
  onmessage: ((event: MessageEvent) => unknown) | null = null;
  /** The capacity of the link. */
  bps = Infinity;
  private left = 0;
  private queue: { number: number; quality: number; index: number; length: number; bytes: number }[] = [];

  constructor(private readonly whole: (number: number, quality: number) => void) {}

  send(data: Uint8Array<ArrayBuffer>): void {
    const view = new DataView(data.buffer);
    this.bufferedAmount += data.length;
    this.queue.push({ number: view.getUint32(8), quality: view.getUint8(4), index: view.getUint16(6), length: view.getUint32(12), bytes: data.length });
  }

  /** Simulates the link for the given milliseconds. */
  carry(milliseconds: number): void {
    let room = (this.bps / 8000) * milliseconds;
    for (let head = this.queue[0]; head && room > 0; head = this.queue[0]) {
      const some = Math.min(room, head.bytes);
      room -= some;
      this.left += some;
      head.bytes -= some;
      if (head.bytes === 0) {
        this.queue.shift();
        if ((head.index + 1) * chunkSize >= head.length) {
          this.whole(head.number, head.quality);
        }
      }
    }
    if (this.left >= told || (this.left > 0 && this.queue.length === 0)) {
      const before = this.bufferedAmount;
      this.bufferedAmount -= this.left;
      this.left = 0;
      if (before > this.bufferedAmountLowThreshold && this.bufferedAmount <= this.bufferedAmountLowThreshold) {
        this.onbufferedamountlow?.(new Event("bufferedamountlow"));
      }
    }
  }

  close(): void {}
}

/** The time in milliseconds. */
const clock = { now: 0 };
/** The time limit on a busy machine for a simulated minute. */
const patience = 60_000;

class FakeWorker {
  last: StudioOrder | undefined;
  onmessage: ((event: { data: unknown }) => void) | undefined;
  postMessage(order: StudioOrder): void {
    this.last = order.type === "wanted" ? order : this.last;
  }
  terminate(): void {}
}

const qualities = ["low", "mid", "high"].map((name, q) => ({ name, share: [0.25, 0.5, 1][q]!, bits: 10 }));

/** A publisher of one tile in three qualities, with a given rate of the highest, and a link. */
class Rig {
  readonly transcript: string[] = [];
  readonly said: ClientMessage[] = [];
  private readonly publisher: Publisher;
  private readonly studio = new FakeWorker();
  private readonly encoder = new FakeWorker();
  private readonly channel = new LinkedChannel((number, quality) => this.arrived.push({ quality, age: clock.now - this.captures.get(number)! }));
  private readonly captures = new Map<number, number>();
  private arrived: { quality: number; age: number }[] = [];
  private decided = "";

  constructor(
    private readonly fps: number,
    private readonly high: number,
  ) {
    const plan: Plan = { source: { kind: "figure", seed: 1 }, box: figureBox, tiles: 1, qualities, points: 4000, fps };
    const send = (m: ClientMessage): boolean => this.said.push(m) > 0;
    const own = new OwnPublications(send);
    const link = { send, giveUp: (name: string, givenUp: GivenUp) => own.giveUp(name, givenUp), retract: () => {}, channel: () => this.channel, ahead: () => 0 };
    const crew = { studio: this.studio as unknown as Worker, encoders: [this.encoder as unknown as Worker] };
    this.publisher = new Publisher(link, "body", plan, crew, undefined, { refused: () => {}, trouble: () => {}, picture: async () => undefined });
    this.publisher.entered(true, false);
    this.publisher.handle({ type: "ok", id: "body/1" });
  }

  /**
   * Simulates the given seconds with a capacity, and returns the frames per second that arrived,
   * and the age of the oldest when it was complete.
   */
  through(seconds: number, bps: number): void {
    this.channel.bps = bps;
    this.arrived = [];
    const interval = 1000 / this.fps;
    for (const end = clock.now + 1000 * seconds; clock.now < end; ) {
      clock.now += 5;
      if (clock.now % interval < 5) {
        this.capture(Math.floor(clock.now / interval));
      }
      this.channel.carry(5);
      vi.advanceTimersByTime(5);
      this.note();
    }
    const age = Math.max(0, ...this.arrived.map((f) => f.age));
    const rates = qualities.map((_, q) => (this.arrived.filter((f) => f.quality === q).length / seconds).toFixed(1));
    this.transcript.push(`${clock.now / 1000} s: at ${bps / 1e6} Mbit/s ${rates.join(" ")} frames per second, at most ${(age / 1000).toFixed(1)} s old`);
  }

  end(): void {
    this.publisher.end();
  }

  private capture(number: number): void {
    const order = this.studio.last;
    if (order?.type !== "wanted") {
      throw new Error("the studio was told nothing");
    }
    this.captures.set(number, clock.now);
    for (const quality of order.tiles[0]!) {
      const bytes = Math.round((this.high / 8 / this.fps) * qualities[quality]!.share * order.share);
      this.encoder.onmessage?.({ data: { type: "encoded", number, captured: clock.now, tile: 0, quality, points: 1, data: new Uint8Array(bytes), milliseconds: 1 } });
    }
  }

  private note(): void {
    const order = this.studio.last;
    const decided = order?.type === "wanted" ? `${order.tiles[0]!.length} qualities, ${Math.round(100 * order.share)} % of the points` : "";
    if (decided !== this.decided) {
      this.decided = decided;
      this.transcript.push(`${clock.now / 1000} s: ${decided}`);
    }
  }
}

describe("a publisher behind a narrow uplink", () => {
  beforeEach(() => {
    clock.now = 0;
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    // A fractional origin would cause fractional differences of times.
    vi.stubGlobal("performance", { timeOrigin: 0, now: () => clock.now });
  });
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  const run = (fps: number, high: number, ...phases: [seconds: number, bps: number][]): Rig => {
    const rig = new Rig(fps, high);
    for (const [seconds, bps] of phases) {
      rig.through(seconds, bps);
    }
    rig.end();
    return rig;
  };

  it("follows a step from 50 to 3 Mbit/s, and comes back", () => {
    const rig = run(15, 20e6, [2, 50e6], [15, 3e6], [25, 50e6]);
    expect(rig.transcript).toEqual([
      "0.005 s: 3 qualities, 100 % of the points",
      "2 s: at 50 Mbit/s 14.5 14.5 14.5 frames per second, at most 0.1 s old",
      "2.5 s: 1 qualities, 100 % of the points",
      "3.5 s: 1 qualities, 67 % of the points",
      "4.5 s: 1 qualities, 40 % of the points",
      "6.5 s: 1 qualities, 61 % of the points",
      "8.5 s: 1 qualities, 40 % of the points",
      "12.5 s: 1 qualities, 61 % of the points",
      "14.5 s: 1 qualities, 40 % of the points",
      "17 s: at 3 Mbit/s 13.7 0.1 0.1 frames per second, at most 0.9 s old",
      "22.5 s: 1 qualities, 61 % of the points",
      "25.5 s: 1 qualities, 91 % of the points",
      "28.5 s: 1 qualities, 100 % of the points",
      "31.5 s: 2 qualities, 100 % of the points",
      "34.5 s: 3 qualities, 100 % of the points",
      "42 s: at 50 Mbit/s 15.0 6.3 4.5 frames per second, at most 0.1 s old",
    ]);
    expect(rig.said.filter((m) => m.type === "uplink").map((m) => m.gave_up.map((t) => t.quality))).toEqual([[1, 2], [2], []]);
  }, patience);

  it("keeps the lowest quality flowing at 340 kbit/s, and tries ever more rarely what does not fit", () => {
    expect(run(10, 0.85e6, [2, 100e6], [15, 0.34e6], [25, 100e6]).transcript).toEqual([
      "0.005 s: 3 qualities, 100 % of the points",
      "2 s: at 100 Mbit/s 10.0 10.0 10.0 frames per second, at most 0.0 s old",
      "3 s: 2 qualities, 100 % of the points",
      "4 s: 1 qualities, 100 % of the points",
      "6 s: 2 qualities, 100 % of the points",
      "6.5 s: 1 qualities, 100 % of the points",
      "10.5 s: 2 qualities, 100 % of the points",
      "11.5 s: 1 qualities, 100 % of the points",
      "17 s: at 0.34 Mbit/s 8.3 1.1 0.3 frames per second, at most 0.9 s old",
      "19.5 s: 2 qualities, 100 % of the points",
      "22.5 s: 3 qualities, 100 % of the points",
      "42 s: at 100 Mbit/s 10.0 9.0 7.8 frames per second, at most 0.0 s old",
    ]);
  }, patience);

  it("falls back to the lowest quality while nothing leaves for 20 s, and climbs after that, with nothing old but what was under way", () => {
    expect(run(10, 0.85e6, [2, 2e6], [20, 0], [1, 2e6], [11, 2e6]).transcript).toEqual([
      "0.005 s: 3 qualities, 100 % of the points",
      "2 s: at 2 Mbit/s 9.5 9.5 9.5 frames per second, at most 0.1 s old",
      "3 s: 1 qualities, 100 % of the points",
      "22 s: at 0 Mbit/s 0.0 0.0 0.0 frames per second, at most 0.0 s old",
      "23 s: at 2 Mbit/s 11.0 2.0 2.0 frames per second, at most 20.1 s old",
      "24 s: 2 qualities, 100 % of the points",
      "27 s: 3 qualities, 100 % of the points",
      "34 s: at 2 Mbit/s 10.0 9.0 6.3 frames per second, at most 0.1 s old",
    ]);
  }, patience);
});
