import { readFile } from "node:fs/promises";
import { describe, expect, it, vi } from "vitest";
import { PointPool, type Points } from "../../src/decode/points";
import { chunkOf, chunkSize, chunksOf, type OutgoingFrame, timestampOf, withPrefix } from "../../src/publish/chunks";
import { loadEncoder } from "../../src/publish/draco";
import { Figure, figureBox, seedOf } from "../../src/publish/figure/figure";
import { History } from "../../src/publish/history";
import { describe as description, Publisher } from "../../src/publish/publisher";
import { cut, standardQualities, Tiling } from "../../src/publish/tiling";
import type { Plan, StudioOrder } from "../../src/publish/traffic";
import { type Channel, Uplink } from "../../src/publish/uplink";
import { planOf, wishesOf } from "../../src/publish/wishes";
import type { ClientMessage } from "../../src/signal/messages";

/** The time limit on a busy machine for a person. */
const patience = 60_000;

const hex = (bytes: Uint8Array): string => [...bytes].map((b) => b.toString(16).padStart(2, "0")).join(" ");

function frame(number: number, size: number, more: Partial<OutgoingFrame> = {}): OutgoingFrame {
  return { tile: 0, quality: 0, number, timestamp: 90 * number, data: new Uint8Array(size).fill(number), ...more };
}

describe("chunks", () => {
  it("writes the prefix of docs/payload.md", () => {
    const data = withPrefix("drco", Date.UTC(2026, 10, 20, 15, 30, 0, 250), new TextEncoder().encode("tile!"));
    expect(hex(data)).toBe("64 72 63 6f ee aa e5 f8 40 00 00 00 74 69 6c 65 21");
  });

  it("writes headers, and cuts frames where they end", () => {
    const f = frame(0x01020304, chunkSize + 1, { tile: 0x0506, quality: 7, timestamp: 0x08090a0b });
    expect(chunksOf(f.data.length)).toBe(2);
    expect(chunkOf(f, 0, 0).length).toBe(22 + chunkSize);
    expect(hex(chunkOf(f, 1, 0x0c0d).subarray(0, 22))).toBe("02 01 05 06 07 00 00 01 01 02 03 04 00 00 04 73 08 09 0a 0b 0c 0d");
    expect(chunkOf(f, 1, 0).length).toBe(23);
    expect(chunksOf(0)).toBe(1);
    expect(chunksOf(chunkSize)).toBe(1);
  });

  it("counts 90 kHz from a beginning, and wraps around", () => {
    expect(timestampOf(1000, 5)).toBe(90_005);
    expect(timestampOf(1000, 2 ** 32 - 1)).toBe(89_999);
  });
});

/** The chunks that are added to a channel at once, and their bytes of the frame. */
const chunks = 56;
const group = chunks * chunkSize;

/** A channel that keeps its data until a test removes it. */
class FakeChannel implements Channel {
  readyState: RTCDataChannelState = "open";
  bufferedAmount = 0;
  bufferedAmountLowThreshold = 0;
  binaryType: BinaryType = "blob";
  onbufferedamountlow: ((event: Event) => unknown) | null = null;
  onmessage: ((event: MessageEvent) => unknown) | null = null;
  sent: { number: number; tile: number; quality: number; index: number; sequence: number }[] = [];
  closed = false;

  send(data: Uint8Array<ArrayBuffer>): void {
    const view = new DataView(data.buffer);
    this.sent.push({ number: view.getUint32(8), tile: view.getUint16(2), quality: view.getUint8(4), index: view.getUint16(6), sequence: view.getUint16(20) });
    this.bufferedAmount += data.length;
  }

  drain(bytes: number): void {
    const before = this.bufferedAmount;
    this.bufferedAmount = Math.max(0, before - bytes);
    if (before > this.bufferedAmountLowThreshold && this.bufferedAmount <= this.bufferedAmountLowThreshold) {
      this.onbufferedamountlow?.(new Event("bufferedamountlow"));
    }
  }

  close(): void {
    this.closed = true;
  }
}

describe("Uplink", () => {
  const begin = (tiles = 1): { uplink: Uplink; channel: FakeChannel; clock: { now: number } } => {
    const clock = { now: 0 };
    const uplink = new Uplink(tiles, () => {}, () => clock.now);
    const channel = new FakeChannel();
    uplink.connect(channel);
    return { uplink, channel, clock };
  };

  it("finishes what it has begun, then sends the newest, and never more than the channel has room for", () => {
    const { uplink, channel } = begin();
    uplink.offer(frame(1, 5 * group));
    expect(channel.sent.map((c) => c.index)).toEqual(Array.from({ length: chunks }, (_, i) => i));
    uplink.offer(frame(2, 100));
    uplink.offer(frame(3, 100));
    for (let i = 0; i < 10; i++) {
      channel.drain(2 * group);
      uplink.pump();
    }
    expect(channel.sent.map((c) => c.number)).toEqual([...new Array<number>(5 * chunks).fill(1), 3]);
    expect(channel.sent.map((c) => c.sequence)).toEqual(channel.sent.map((_, i) => i));
    expect(uplink.take()).toMatchObject({ sent: 2, dropped: 1 });
  });

  it("sends lower qualities first, and has tiles take turns", () => {
    const { uplink, channel } = begin(2);
    channel.bufferedAmount = 1e9;
    for (const number of [6, 7]) {
      for (const tile of [0, 1]) {
        uplink.offer(frame(number, 10, { tile, quality: 1 }));
        uplink.offer(frame(number, 10, { tile, quality: 0 }));
      }
    }
    channel.drain(1e9);
    uplink.pump();
    expect(channel.sent.map((c) => `${c.number}/${c.quality}/${c.tile}`)).toEqual(["7/0/1", "7/0/0", "7/1/1", "7/1/0"]);
  });

  it("forgets what nobody takes any more", () => {
    const { uplink, channel } = begin();
    channel.bufferedAmount = 1e9;
    uplink.offer(frame(1, 10, { quality: 0 }));
    uplink.offer(frame(1, 10, { quality: 1 }));
    uplink.keepOnly((_, quality) => quality === 0);
    channel.drain(1e9);
    uplink.pump();
    expect(channel.sent.map((c) => c.quality)).toEqual([0]);
  });

  it("begins anew on another channel", () => {
    const { uplink, channel } = begin();
    uplink.offer(frame(1, 5 * group));
    channel.readyState = "closed";
    uplink.offer(frame(2, 10));
    const next = new FakeChannel();
    uplink.connect(next);
    expect(next.sent).toMatchObject([{ number: 2, sequence: 0 }]);
    expect(uplink.take().dropped).toBe(1);
  });

  it("has little in the channel of a narrow uplink, and never lets it run dry", () => {
    const { uplink, channel, clock } = begin();
    let [most, least] = [0, Infinity];
    for (let number = 1; clock.now < 10_000; number++, clock.now += 100) {
      uplink.offer(frame(number, 10_000));
      // 300 kbit/s.
      channel.drain(3750);
      uplink.pump();
      most = Math.max(most, channel.bufferedAmount);
      least = Math.min(least, channel.bufferedAmount);
    }
    expect(uplink.rate! / 3e5).toBeCloseTo(1, 1);
    expect(least).toBeGreaterThan(0);
    expect(most).toBeLessThan(45_000);
  });

  it("measures what the uplink carries where it is what holds frames up", () => {
    const { uplink, channel, clock } = begin();
    for (let number = 1; clock.now < 2000; number++, clock.now += 20) {
      uplink.offer(frame(number, 60_000));
      // 1000 bytes in a millisecond are 8 Mbit/s.
      channel.drain(20_000);
      uplink.pump();
    }
    expect(uplink.rate! / 8e6).toBeCloseTo(1, 1);
    channel.drain(1e9);
    uplink.pump();
    channel.drain(1e9);
    uplink.pump();
    clock.now += 5000;
    expect(uplink.rate).toBeUndefined();
  });

  it("leaves out the rest of a frame that is abandoned", () => {
    const { uplink, channel } = begin();
    uplink.offer(frame(1, 5 * group));
    uplink.abandon();
    uplink.offer(frame(2, 10));
    channel.drain(1e9);
    expect(channel.sent.slice(-2)).toMatchObject([{ number: 1, index: chunks - 1, sequence: chunks - 1 }, { number: 2, index: 0, sequence: chunks }]);
    expect(uplink.take()).toMatchObject({ sent: 1, dropped: 1 });
  });
});

describe("Requests", () => {
  const request = (...numbers: number[]): ArrayBuffer => {
    const message = new DataView(new ArrayBuffer(2 * numbers.length));
    numbers.forEach((number, i) => message.setUint16(2 * i, number));
    return message.buffer;
  };
  const ask = (channel: FakeChannel, ...numbers: number[]): unknown => channel.onmessage?.(new MessageEvent("message", { data: request(...numbers) }));

  it("are answered with the same messages, if they fit", () => {
    const channel = new FakeChannel();
    const uplink = new Uplink(1, () => {}, () => 0);
    uplink.connect(channel);
    expect(channel.binaryType).toBe("arraybuffer");
    uplink.offer(frame(7, 3 * chunkSize));
    // Everything is still in the channel.
    ask(channel, 1, 2);
    channel.bufferedAmount = 0;
    ask(channel, 1, 2, 3, 9999);
    expect(channel.sent.map((c) => `${c.number}/${c.index}/${c.sequence}`)).toEqual(["7/0/0", "7/1/1", "7/2/2", "7/1/1", "7/2/2"]);
    expect(uplink.take()).toMatchObject({ sent: 1, bytes: 5 * (chunkSize + 22) });
    channel.bufferedAmount = 1e9;
    ask(channel, 0);
    channel.bufferedAmount = 0;
    channel.readyState = "closed";
    ask(channel, 0);
    expect(channel.sent.length).toBe(5);
  });

  it("find the last 2,048 messages, across the wrap of numbers", () => {
    const history = new History();
    for (let i = 0; i < 65_536 + 10; i++) {
      history.add({ message: new Uint8Array([i & 0xff, i >> 8]), end: 0 });
    }
    expect(history.next).toBe(10);
    const found = (...numbers: number[]): number[] => history.requested(request(...numbers)).map(({ message }) => message[0]! + 256 * message[1]!);
    expect(found(9, 0, 65_535, 65_546 - 2048)).toEqual([9, 0, 65_535, 65_546 - 2048]);
    expect(found(10, 65_545 - 2048)).toEqual([]);
    expect(history.requested(new ArrayBuffer(3)).length).toBe(1);
  });

  it("have the last chunk repeated while chunks are lost and none follows", () => {
    vi.useFakeTimers();
    try {
      const channel = new FakeChannel();
      const uplink = new Uplink(1, () => {}, () => Date.now());
      uplink.connect(channel);
      const send = (number: number): void => {
        uplink.offer(frame(number, 10));
        channel.bufferedAmount = 0;
      };
      const repeated = (): number => {
        const before = channel.sent.length;
        for (let i = 0; i < 10; i++) {
          vi.advanceTimersByTime(10);
          channel.bufferedAmount = 0;
        }
        return channel.sent.length - before;
      };
      send(1);
      expect(repeated()).toBe(0);
      ask(channel, 9999);
      send(2);
      expect(repeated()).toBe(4);
      expect(channel.sent.at(-1)).toMatchObject({ number: 2, sequence: 1 });
      send(3);
      send(4);
      expect(repeated()).toBe(4);
      vi.advanceTimersByTime(5000);
      send(5);
      expect(repeated()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("Tiling", () => {
  const box = figureBox;

  it.each([1, 2, 4, 9])("has every point in the box of its tile, of %i", (count) => {
    const tiling = new Tiling(count, box);
    const tiles = Array.from({ length: count }, (_, i) => tiling.tile(i));
    const met = new Set<number>();
    for (let i = 0; i < 2000; i++) {
      const p = box.min.map((v, axis) => v + ((i * [0.618, 0.414, 0.732][axis]!) % 1) * (box.max[axis]! - v)) as [number, number, number];
      const tile = tiling.tileOf(...p);
      met.add(tile);
      const { min, max } = tiles[tile]!.box;
      if (p.some((v, axis) => v < min[axis]! - 1e-9 || v > max[axis]! + 1e-9)) {
        expect.fail(`${p.join()} is not in the box of tile ${tile}`);
      }
    }
    expect(met.size).toBe(count);
    expect(new Set(tiles.map((t) => t.label)).size).toBe(count);
  });

  it("has qualities that are beginnings of each other, and clamps to the box", () => {
    const points: Points = { count: 8, positions: new Float32Array(24), colors: new Uint8Array(24) };
    for (let i = 0; i < 8; i++) {
      points.positions.set([i, 1, i % 2 === 0 ? 0.5 : -0.5], 3 * i);
      points.colors[3 * i] = i;
    }
    const pool = new PointPool();
    const parts = cut(points, new Tiling(2, box), [0.25, 1], (room) => pool.take(room));
    expect(parts.map((p) => p.counts)).toEqual([[1, 4], [1, 4]]);
    expect([...parts[1]!.points.colors.subarray(0, 12)].filter((_, i) => i % 3 === 0)).toEqual([1, 3, 5, 7]);
    expect(parts[0]!.points.positions[9]).toBeCloseTo(box.max[0], 6);
  });

  it("refuses other numbers of tiles", () => {
    expect(() => new Tiling(3, box)).toThrow("expected one of 1, 2, 4, 9");
  });
});

describe("Figure", () => {
  const at = (figure: Figure, t: number): Points => {
    const points = { count: 0, positions: new Float32Array(3 * figure.points), colors: new Uint8Array(3 * figure.points) };
    figure.at(t, points);
    return points;
  };

  it("is the same person each time, moves, and stays in its box", () => {
    const seed = seedOf("ada");
    const figure = new Figure(800, seed);
    expect(at(new Figure(800, seed), 3)).toEqual(at(figure, 3));
    expect(at(figure, 3).positions).not.toEqual(at(figure, 4).positions);
    expect(at(new Figure(800, seedOf("grace")), 3).colors).not.toEqual(at(figure, 3).colors);
    for (let t = 0; t < 30; t += 0.7) {
      const outside = at(figure, t).positions.filter((v, i) => v < figureBox.min[i % 3]! || v > figureBox.max[i % 3]!);
      expect(outside).toHaveLength(0);
    }
  }, patience);

  it("has its points in an order any beginning of which is the whole person", () => {
    const points = at(new Figure(2000, 7), 0);
    const heights = [...points.positions.subarray(0, 600)].filter((_, i) => i % 3 === 1);
    expect(Math.min(...heights)).toBeLessThan(0.1);
    expect(Math.max(...heights)).toBeGreaterThan(1.65);
  }, patience);
});

describe("Draco", () => {
  it("puts all tiles and qualities on one grid, and keeps colours", async () => {
    const folder = new URL("../../node_modules/draco3d/", import.meta.url);
    const wasm = async (name: string): Promise<ArrayBuffer> => Uint8Array.from(await readFile(new URL(name, folder))).buffer;
    const encoder = await loadEncoder(await wasm("draco_encoder.wasm"));
    vi.stubGlobal("fetch", async () => new Response(await wasm("draco_decoder.wasm")));
    const { loadDraco } = await import("../../src/decode/draco");
    const decoder = await loadDraco();
    vi.unstubAllGlobals();
    const figure = new Figure(3000, 1);
    const points = { count: 0, positions: new Float32Array(9000), colors: new Uint8Array(9000) };
    figure.at(1, points);
    const bits = 11;
    const step = (figureBox.max[1] - figureBox.min[1]) / (2 ** bits - 1);
    const pool = new PointPool();
    for (const part of cut(points, new Tiling(4, figureBox), [1], (room) => pool.take(room))) {
      const count = part.counts[0]!;
      const data = encoder.encode(part.points, count, bits, figureBox);
      expect(data.length).toBeLessThan(6 * count);
      const decoded = await decoder.decode(data, pool);
      expect(decoded.count).toBe(count);
      const near = (p: Points): string[] => Array.from({ length: count }, (_, i) => [
        ...[0, 1, 2].map((axis) => Math.round((p.positions[3 * i + axis]! - figureBox.min[axis]!) / step)), ...p.colors.subarray(3 * i, 3 * i + 3),
      ].join()).sort();
      expect(near(decoded)).toEqual(near(part.points));
    }
    expect(encoder.encode(points, 0, bits, figureBox).length).toBe(0);
  }, patience);
});

const plan: Plan = { source: { kind: "figure", seed: 1 }, box: figureBox, tiles: 2, qualities: standardQualities, points: 100, fps: 10 };

describe("Publisher", () => {
  class FakeWorker {
    orders: StudioOrder[] = [];
    onmessage: ((event: { data: unknown }) => void) | undefined;
    postMessage(order: StudioOrder): void {
      this.orders.push(order);
    }
    terminate(): void {}
  }
  const begin = (seal?: ConstructorParameters<typeof Publisher>[0]["seal"], what: Plan = plan, open?: () => FakeChannel) => {
    const [studio, encoder, channel] = [new FakeWorker(), new FakeWorker(), new FakeChannel()];
    const said: ClientMessage[] = [];
    const refused: string[] = [];
    const retract = (publication: string): void => void said.push({ type: "unpublish", publication });
    const link = { send: (m: ClientMessage) => said.push(m) > 0, giveUp: () => {}, retract, channel: open ?? (() => channel), ahead: () => 0, seal };
    const crew = { studio: studio as unknown as Worker, encoders: [encoder as unknown as Worker] };
    const publisher = new Publisher(link, "body", what, crew, undefined, { refused: (m) => refused.push(m), trouble: (m) => refused.push(m), picture: async () => undefined });
    return { publisher, studio, encoder, channel, said, refused };
  };
  const wanted = (studio: FakeWorker): number[][] | undefined => {
    const last = studio.orders.filter((o) => o.type === "wanted").at(-1);
    return last?.type === "wanted" ? last.tiles : undefined;
  };
  const encoded = (quality: number) => ({
    data: { type: "encoded", number: 1, captured: 0, tile: 0, quality, points: 5, data: new Uint8Array(10), milliseconds: 1 },
  });

  it("announces itself, and encodes only what somebody takes", () => {
    const { publisher, studio, encoder, channel, said } = begin();
    publisher.entered(true, false);
    expect(said[0]).toMatchObject({ type: "publish", id: "body/1", publication: description("body", plan) });
    expect(publisher.handle({ type: "ok", id: "body/1" })).toBe(true);
    expect(wanted(studio)).toEqual([[0, 1, 2], [0, 1, 2]]);
    publisher.handle({ type: "wanted", publications: [{ publication: "body", tiles: [[0], []] }] });
    expect(wanted(studio)).toEqual([[0], []]);
    encoder.onmessage?.(encoded(0));
    encoder.onmessage?.(encoded(2));
    expect(channel.sent.map((c) => c.quality)).toEqual([0]);
    publisher.end();
    expect(said.at(-1)).toEqual({ type: "unpublish", publication: "body" });
    expect(channel.closed).toBe(true);
  });

  it("announces rasters when their tiles are known, and sends frames of rgbd", () => {
    const tiles = [0, 1].map((i) => ({ label: `camera 0, rectangle ${i}`, box: plan.box, points: 900 }));
    const { publisher, studio, encoder, channel, said } = begin(undefined, { ...plan, codec: "rgbd" });
    publisher.entered(true, false);
    expect(said).toHaveLength(0);
    studio.onmessage?.({ data: { type: "tiles", tiles } });
    expect(said).toMatchObject([{ type: "publish", publication: { codec: { fmtp: "codec=rgbd" }, tiles: tiles.map(({ label, box }) => ({ label, box })) } }]);
    publisher.handle({ type: "ok", id: "body/1" });
    encoder.onmessage?.(encoded(0));
    expect(channel.sent).toHaveLength(1);
    publisher.entered(true, false);
    expect(said.filter((m) => m.type === "publish")).toHaveLength(2);
    publisher.end();
  });

  it("encrypts frames in their order where there is a key", async () => {
    const sealed: { number: number; data: Uint8Array }[] = [];
    const { publisher, encoder, channel, said } = begin(async (frame) => {
      sealed.push(frame);
      return frame.number === 2 ? undefined : new Uint8Array(50);
    });
    publisher.entered(true, false);
    expect(said[0]).toMatchObject({ publication: { name: "body", encryption: "sframe" } });
    publisher.handle({ type: "ok", id: "body/1" });
    for (const number of [1, 2, 3]) {
      encoder.onmessage?.({ data: { ...encoded(1).data, number } });
    }
    await vi.waitFor(() => expect(channel.sent.map((c) => c.number)).toEqual([1, 3]), { timeout: 60_000 });
    expect(sealed.map((f) => [f.number, f.data.length])).toEqual([[1, 22], [2, 22], [3, 22]]);
    publisher.end();
  });

  it("goes on after resuming, and begins anew where the session was lost", () => {
    const { publisher, said } = begin();
    publisher.entered(true, false);
    publisher.handle({ type: "ok", id: "body/1" });
    publisher.entered(true, true);
    expect(said.filter((m) => m.type === "publish")).toHaveLength(1);
    publisher.entered(true, false);
    expect(said.filter((m) => m.type === "publish")).toHaveLength(2);
    expect(publisher.handle({ type: "error", id: "body/2", code: "exists", message: "" })).toBe(true);
    expect(publisher.state().live).toBe(true);
    publisher.end();
  });

  describe("while the session moves to another server", () => {
    const moving = () => {
      const channels: FakeChannel[] = [];
      const rig = begin(undefined, plan, () => {
        const channel = new FakeChannel();
        channels.push(channel);
        return channel;
      });
      const send = (number: number, quality = 0): void => rig.encoder.onmessage?.({ data: { ...encoded(quality).data, number } });
      const sent = (): number[][] => channels.map((c) => c.sent.map(({ number }) => number));
      rig.publisher.entered(true, false);
      rig.publisher.handle({ type: "ok", id: "body/1" });
      send(1);
      return { ...rig, channels, send, sent };
    };
    const now = (): number => performance.timeOrigin + performance.now();

    it("sends a frame and all later ones over the next channel once that is open, and none twice", () => {
      const { publisher, channels, send, sent, said } = moving();
      publisher.moved(true);
      channels[1]!.readyState = "connecting";
      send(2);
      expect([sent(), publisher.moves(now()), publisher.moves(now() + 2000)]).toEqual([[[1, 2], []], true, false]);
      channels[1]!.readyState = "open";
      send(2, 1);
      send(3);
      send(2, 2);
      send(3, 1);
      expect(sent()).toEqual([[1, 2, 2, 2], [3, 3]]);
      // The rest of the former channel leaves first.
      expect(publisher.moves(now())).toBe(true);
      channels[0]!.drain(1e9);
      expect(publisher.moves(now())).toBe(false);
      publisher.left();
      send(4);
      expect(sent()).toEqual([[1, 2, 2, 2], [3, 3, 4]]);
      expect(said.filter((m) => m.type === "publish")).toHaveLength(1);
      publisher.end();
      expect(channels.map((c) => c.closed)).toEqual([false, true]);
    });

    it("encodes what the server of the present frames wants", () => {
      const { publisher, channels, studio, send } = moving();
      publisher.moved(true);
      channels[1]!.readyState = "connecting";
      publisher.handle({ type: "wanted", publications: [{ publication: "body", tiles: [[0], [0]] }] });
      expect(wanted(studio)).toEqual([[0, 1, 2], [0, 1, 2]]);
      publisher.handle({ type: "wanted", publications: [{ publication: "body", tiles: [[1], [1]] }] }, true);
      expect(wanted(studio)).toEqual([[1], [1]]);
      channels[1]!.readyState = "open";
      send(2, 1);
      expect(wanted(studio)).toEqual([[0], [0]]);
      publisher.handle({ type: "wanted", publications: [{ publication: "body", tiles: [[2], [2]] }] }, true);
      expect(wanted(studio)).toEqual([[0], [0]]);
      publisher.end();
    });

    it("begins again if the session is resumed with another connection instead", () => {
      const { publisher, channels, send, sent } = moving();
      publisher.moved(true);
      channels[1]!.readyState = "connecting";
      publisher.entered(true, true);
      send(2);
      expect(sent()).toEqual([[1], [], [2]]);
      publisher.end();
    });

    it("announces itself to a server that has lost the session's state", () => {
      const { publisher, channels, said, send, sent } = moving();
      publisher.moved(false);
      expect(channels).toHaveLength(1);
      expect(said.filter((m) => m.type === "publish")).toHaveLength(2);
      publisher.handle({ type: "ok", id: "body/2" });
      send(2);
      expect(sent()).toEqual([[1], [2]]);
      publisher.end();
    });
  });

  it("says what to do where it may not publish", () => {
    const { publisher, refused, said } = begin();
    publisher.entered(true, false);
    publisher.handle({ type: "error", id: "body/1", code: "forbidden", message: "no" });
    expect(refused[0]).toContain("volsfu token --publish");
    publisher.end();
    expect(said).toHaveLength(1);
  });

  it("takes back what the server has not answered yet", () => {
    const { publisher, said } = begin();
    publisher.entered(true, false);
    publisher.end();
    expect(said.at(-1)).toEqual({ type: "unpublish", publication: "body" });
  });
});

describe("wishesOf", () => {
  it("reads links, and passes over what is not possible", () => {
    const wishes = wishesOf(new URLSearchParams("publish=camera&points=5000&tiles=7&fps=0&qualities=high,none&near=1&far=0.5"));
    expect(wishes).toMatchObject({ kind: "camera", points: 5000, tiles: 1, fps: 15, qualities: ["high"] });
    expect(wishes.lens.far).toBeGreaterThan(wishes.lens.near);
    const made = planOf(wishes, "ada", 8 / 3);
    expect(made.qualities.map((q) => q.name)).toEqual(["high"]);
    expect(made.box.max[2] - made.box.min[2]).toBeCloseTo(0.1, 5);
  });
});
