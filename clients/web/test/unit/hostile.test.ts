import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Draco } from "../../src/decode/draco";
import { DecodeError, PointPool, type Points } from "../../src/decode/points";
import { ChunkAssembler } from "../../src/media/chunks";
import { BoundedDecoders, mostBytes, slowness } from "./bounded";
import { FakeImages, vectors } from "./vectors";

/** The WebAssembly of Draco starts with 16 MiB, and needs slightly more for a small frame. */
const smallHeap = 17 << 20;

/** A busy machine needs more than the default time limit. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let draco: Draco;
let decoders: BoundedDecoders;
const images = new FakeImages();

beforeAll(async () => {
  decoders = await BoundedDecoders.load();
  draco = decoders.draco;
});
beforeEach(() => {
  images.decoded = 0;
  images.install();
});
afterEach(() => vi.unstubAllGlobals());

/** Returns the FNV-1a sum of the positions. */
function sumOf({ positions, count }: Points): number {
  let sum = 0x811c9dc5;
  for (const byte of new Uint8Array(positions.buffer, 0, 12 * count)) {
    sum = Math.imul(sum ^ byte, 0x01000193) >>> 0;
  }
  return sum;
}

describe("test vectors", () => {
  it("decode to the points that Go's decoders make of them", async () => {
    for (const frame of await vectors("valid")) {
      const points = await decoders.decode(frame, slowness);
      expect(points, `${frame.codec}, ${frame.name}: ${(points as Error).message}`).not.toBeInstanceOf(Error);
      expect([(points as Points).count, sumOf(points as Points)], `${frame.codec}, ${frame.name}`).toEqual([frame.points, frame.sum]);
    }
    expect(images.decoded).toBeGreaterThan(0);
  });

  it("that are hostile are refused, and take no memory and time", async () => {
    const frames = await vectors("hostile");
    expect(new Set(frames.map((f) => f.codec)).size).toBe(decoders.count);
    for (const frame of frames) {
      expect(await decoders.decode(frame), `${frame.codec}, ${frame.name}`).toBeInstanceOf(DecodeError);
    }
    expect(images.decoded).toBe(0);
    expect(draco.heap).toBeLessThanOrEqual(mostBytes);
  });
});

describe("Draco", () => {
  it("never sees a frame that announces too many points", async () => {
    const decode = vi.spyOn(draco, "prepare");
    for (const frame of (await vectors("hostile")).filter((f) => f.codec === "drco" && /million|billion points/.test(f.name))) {
      await expect(draco.decode(frame.data, new PointPool()), frame.name).rejects.toThrow(/points in \d+ bytes, expected 1 to/);
    }
    expect(decode).not.toHaveBeenCalled();
    decode.mockRestore();
  });

  it("refuses positions that are not finite", async () => {
    const frames = (await vectors("valid")).filter((f) => f.codec === "drco");
    for (const value of [NaN, Infinity]) {
      for (const { data, name } of frames) {
        // A frame ends with the minimum position, the range and the bits of the quantisation: 17 bytes.
        const changed = data.slice();
        new DataView(changed.buffer).setFloat32(changed.length - 17, value, true);
        await expect(draco.decode(changed, new PointPool()), name).rejects.toThrow("expected finite positions");
      }
    }
    expect(frames.length).toBeGreaterThan(0);
  });

  it("gives up an instance whose heap is large, or which ends in the middle, and goes on with another", async () => {
    const [small] = (await vectors("valid")).filter((f) => f.codec === "drco");
    await draco.decode(small!.data, new PointPool());
    expect(draco.heap).toBeLessThan(smallHeap);
    const instance = await draco.prepare();
    // 70,000,000 bytes are more than the permitted heap of an instance.
    (instance as unknown as { reserve(size: number): void }).reserve(70_000_000);
    expect(draco.heap).toBeGreaterThan(mostBytes);
    expect((await draco.decode(small!.data, new PointPool())).count).toBe(small!.points);
    expect(draco.heap).toBe(0);
    expect((await draco.decode(small!.data, new PointPool())).count).toBe(small!.points);
    expect(draco.heap).toBeLessThan(smallHeap);
    expect(draco.heap).toBeGreaterThan(0);
    const ended = vi.spyOn(await draco.prepare(), "decode").mockImplementation(() => {
      throw new WebAssembly.RuntimeError("unreachable");
    });
    await expect(draco.decode(small!.data, new PointPool())).rejects.toThrow('the decoder ended with "unreachable"');
    ended.mockRestore();
    expect(draco.heap).toBe(0);
    expect((await draco.decode(small!.data, new PointPool())).count).toBe(small!.points);
  });
});

describe("ChunkAssembler", () => {
  it("holds what has come, whatever lengths frames claim", () => {
    const before = process.memoryUsage().arrayBuffers;
    const assemblers = Array.from({ length: 64 }, () => new ChunkAssembler());
    for (const assembler of assemblers) {
      for (let timestamp = 1; timestamp <= 3; timestamp++) {
        const message = new Uint8Array(20 + 64_000);
        message[0] = 1;
        new DataView(message.buffer).setUint32(12, 16 << 20);
        new DataView(message.buffer).setUint32(16, timestamp);
        expect(assembler.take(message.buffer)).toBeUndefined();
      }
    }
    // 64 channels of three frames with one chunk each are 12 MB. The declared length is 3 GB.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(mostBytes);
  });
});
