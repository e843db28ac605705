import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Draco } from "../../src/decode/draco";
import { DecodeError, type Decoder, PointPool, type Points } from "../../src/decode/points";
import { ChunkAssembler } from "../../src/media/chunks";
import { FrameError, parseFrame } from "../../src/media/frame";
import { decodersWith, FakeImages, loadDraco, type Vector, vectors } from "./vectors";

/** The memory limit for decoding a frame of a few bytes, as in pkg/codec/codectest. */
const mostBytes = 64 << 20;
const mostCPU = 200_000;
/** Mutations run in parallel with the tests of other files, in code that is not yet optimised. */
const slowness = 10;
/** The WebAssembly of Draco starts with 16 MiB, and needs slightly more for a small frame. */
const smallHeap = 17 << 20;
/** The number of mutations of each valid frame, all of which are decoded. */
const mutations = 60;

/** A busy machine needs more than the default time limit. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let draco: Draco;
let decoders: ReadonlyMap<string, Decoder>;
const images = new FakeImages();

beforeAll(async () => {
  draco = await loadDraco();
  decoders = decodersWith(draco);
});
beforeEach(() => {
  images.decoded = 0;
  images.install();
});
afterEach(() => vi.unstubAllGlobals());

/** Returns the memory of arrays outside of the script heap, and of Draco's heap. */
function memory(): number {
  return process.memoryUsage().arrayBuffers + draco.heap;
}

/**
 * Decodes a frame within the limits. Returns the points, or the error, which must be a DecodeError.
 */
async function decode({ codec, name, data }: Vector, times = 1): Promise<Points | DecodeError> {
  const before = memory();
  const began = process.cpuUsage();
  let outcome: Points | DecodeError;
  try {
    outcome = await decoders.get(codec)!.decode(data, new PointPool());
  } catch (error) {
    if (!(error instanceof DecodeError)) {
      throw error;
    }
    outcome = error;
  }
  const { user, system } = process.cpuUsage(began);
  const took = `${codec}, ${name}: ${data.length} bytes took ${memory() - before} bytes and ${user + system} µs`;
  expect(memory() - before, took).toBeLessThan(mostBytes);
  expect(user + system, took).toBeLessThan(times * mostCPU);
  return outcome;
}

/** Returns the FNV-1a sum of the positions. */
function sumOf({ positions, count }: Points): number {
  let sum = 0x811c9dc5;
  for (const byte of new Uint8Array(positions.buffer, 0, 12 * count)) {
    sum = Math.imul(sum ^ byte, 0x01000193) >>> 0;
  }
  return sum;
}

/** Returns a generator of random numbers with a fixed sequence (mulberry32). */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

/** Bytes that make numbers in heads large. */
const extremes = [0, 1, 0x7f, 0x80, 0xff];

/** Changes a few bytes, more often at the start, and sometimes the length. */
function mutate(data: Uint8Array, random: (below: number) => number): Uint8Array<ArrayBuffer> {
  const out = Uint8Array.from(data);
  for (let n = 1 + random(4); n > 0; n--) {
    const at = random(random(2) === 0 ? Math.min(out.length, 64) : out.length);
    const run = random(8) === 0 ? 4 : 1;
    out.fill(random(2) === 0 ? extremes[random(extremes.length)]! : random(256), at, at + run);
  }
  switch (random(8)) {
    case 0:
      return out.slice(0, 1 + random(out.length));
    case 1:
      return Uint8Array.from([...out, ...Uint8Array.from({ length: random(32) }, () => random(256))]);
    default:
      return out;
  }
}

describe("test vectors", () => {
  it("decode to the points that Go's decoders make of them", async () => {
    for (const frame of await vectors("valid")) {
      const points = await decode(frame, slowness);
      expect(points, `${frame.codec}, ${frame.name}: ${(points as Error).message}`).not.toBeInstanceOf(Error);
      expect([(points as Points).count, sumOf(points as Points)], `${frame.codec}, ${frame.name}`).toEqual([frame.points, frame.sum]);
    }
    expect(images.decoded).toBeGreaterThan(0);
  });

  it("that are hostile are refused, and take no memory and time", async () => {
    const frames = await vectors("hostile");
    expect(new Set(frames.map((f) => f.codec)).size).toBe(decoders.size);
    for (const frame of frames) {
      expect(await decode(frame), `${frame.codec}, ${frame.name}`).toBeInstanceOf(DecodeError);
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

describe("mutations of valid frames", () => {
  it.each(["raw1", "cwi0", "zstd", "drco", "drcj", "labl", "part"])("of %s decode within the bounds, or are errors", async (codec) => {
    const random = randomOf(7);
    let refused = 0;
    for (const frame of (await vectors("valid")).filter((f) => f.codec === codec)) {
      for (let i = 0; i < mutations; i++) {
        const data = mutate(frame.data, random);
        const outcome = await decode({ ...frame, name: `${frame.name}, mutation ${i}`, data }, slowness);
        if (outcome instanceof Error) {
          refused++;
        } else {
          expect(outcome.count).toBeLessThanOrEqual(65_536 + 64 * data.length);
          expect(outcome.positions.length).toBeGreaterThanOrEqual(3 * outcome.count);
        }
      }
    }
    expect(refused).toBeGreaterThan(0);
  });

  it("are frames and chunks that are read, or errors", () => {
    const random = randomOf(8);
    const wrapped = Uint8Array.from([0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 0x10, 0x00, 0x10, 0x00, 0x11, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 14, ...new Uint8Array(14).fill(65)]);
    const chunk = Uint8Array.from([1, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 14, 0, 0, 11, 184, ...new Uint8Array(14).fill(65)]);
    const assembler = new ChunkAssembler();
    const before = process.memoryUsage().arrayBuffers;
    let read = 0;
    for (let i = 0; i < 5_000; i++) {
      for (const take of [() => parseFrame(mutate(wrapped, random).buffer), () => assembler.take(mutate(chunk, random).buffer)]) {
        try {
          const frame = take();
          read += frame ? 1 : 0;
          expect(frame?.length ?? 0).toBeLessThan(100);
        } catch (error) {
          expect(error).toBeInstanceOf(FrameError);
        }
      }
    }
    expect(read).toBeGreaterThan(0);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(mostBytes);
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
