import { Coverage } from "./coverage";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { ChunkAssembler } from "../../src/media/chunks";
import { FrameError, parseFrame } from "../../src/media/frame";
import { BoundedDecoders, mostBytes, mutate, randomOf, slowness } from "./bounded";
import { FakeImages, vectors } from "./vectors";

/** The number of mutations for each valid frame. TestMutationsLong of test/browser sets a higher one. */
const mutations = Number(process.env.VOLSFU_MUTATIONS ?? 60);
/** The number of mutations between two readings of the coverage, which take some milliseconds. */
const batch = 10;
/** The maximum number of mutations that are kept. */
const mostKept = 500;

/** A busy machine needs more than the default time limit. */
vi.setConfig({ testTimeout: 60_000 + 100 * mutations, hookTimeout: 60_000 });

let decoders: BoundedDecoders;
const images = new FakeImages();

beforeAll(async () => {
  decoders = await BoundedDecoders.load();
});
beforeEach(() => images.install());
afterEach(() => vi.unstubAllGlobals());

function hexOf(data: Uint8Array): string {
  return Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Gives valid inputs and mutations to a reader. A batch of mutations that executes code for the
 * first time is kept, and mutated as the valid inputs are. Returns the number of kept mutations.
 */
async function fuzz(valid: Uint8Array[], seed: number, read: (input: Uint8Array<ArrayBuffer>) => unknown): Promise<number> {
  const random = randomOf(seed);
  const coverage = new Coverage(/\/src\/(decode|media)\//);
  const inputs = [...valid];
  const tryOne = async (input: Uint8Array): Promise<void> => {
    try {
      // Readers may write to their input.
      await read(Uint8Array.from(input));
    } catch (error) {
      throw new Error(`input ${hexOf(input)}: ${(error as Error).message}`, { cause: error });
    }
  };
  for (const input of valid) {
    await tryOne(input);
  }
  coverage.take();
  for (let n = 0; n < mutations * valid.length; n += batch) {
    const tried = Array.from({ length: batch }, () => mutate(inputs[random(inputs.length)]!, random));
    for (const input of tried) {
      await tryOne(input);
    }
    if (coverage.take() && inputs.length < valid.length + mostKept) {
      inputs.push(...tried);
    }
  }
  return inputs.length - valid.length;
}

describe("mutations, guided by coverage,", () => {
  it.each(["raw1", "cwi0", "cwi1", "zstd", "drco", "drcj", "labl", "part", "rgbd"])("of frames of %s decode within the bounds, or are errors", async (codec) => {
    const valid = (await vectors("valid")).filter((f) => f.codec === codec);
    let refused = 0;
    const kept = await fuzz(valid.map((f) => f.data), 7, async (data) => {
      const outcome = await decoders.decode({ codec, name: "a mutation", points: 0, sum: 0, data }, slowness);
      if (outcome instanceof Error) {
        refused++;
      } else {
        expect(outcome.count).toBeLessThanOrEqual(65_536 + 64 * data.length);
        expect(outcome.positions.length).toBeGreaterThanOrEqual(3 * outcome.count);
      }
    });
    expect(refused).toBeGreaterThan(0);
    expect(kept).toBeGreaterThan(0);
  });

  const wrapped = Uint8Array.from([0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 0x10, 0x00, 0x10, 0x00, 0x11, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 14, ...new Uint8Array(14).fill(65)]);
  const chunk = Uint8Array.from([1, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 14, 0, 0, 11, 184, ...new Uint8Array(14).fill(65)]);
  const assembler = new ChunkAssembler();
  it.each([
    ["wrapped frames", wrapped, parseFrame],
    ["chunks", chunk, (message: ArrayBuffer) => assembler.take(message)],
  ])("of %s are read, or are errors", async (_, input, take) => {
    const before = process.memoryUsage().arrayBuffers;
    let read = 0;
    const kept = await fuzz(new Array<Uint8Array>(20).fill(input), 8, (data) => {
      try {
        const frame = take(data.buffer);
        read += frame ? 1 : 0;
        expect(frame?.length ?? 0).toBeLessThan(100);
      } catch (error) {
        expect(error).toBeInstanceOf(FrameError);
      }
    });
    expect(read).toBeGreaterThan(0);
    expect(kept).toBeGreaterThan(0);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(mostBytes);
  });
});
