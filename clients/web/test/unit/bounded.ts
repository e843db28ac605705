// Decoding within bounds of memory and time, and mutations of frames.

import { expect } from "vitest";
import type { Draco } from "../../src/decode/draco";
import { DecodeError, type Decoder, PointPool, type Points } from "../../src/decode/points";
import { decodersWith, loadDraco, type Vector } from "./vectors";

/** The memory limit for decoding a frame of a few bytes, as in pkg/codec/codectest. */
export const mostBytes = 64 << 20;
const mostCPU = 200_000;
/** The factor for tests of many frames, which run in parallel with other files in code that is not yet optimised. */
export const slowness = 10;

/** The decoders of a page, with bounds. */
export class BoundedDecoders {
  private constructor(
    readonly draco: Draco,
    private readonly decoders: ReadonlyMap<string, Decoder>,
  ) {}

  static async load(): Promise<BoundedDecoders> {
    const draco = await loadDraco();
    return new BoundedDecoders(draco, decodersWith(draco));
  }

  get count(): number {
    return this.decoders.size;
  }

  /**
   * Decodes a frame within the limits. Returns the points, or the error, which must be a
   * DecodeError.
   */
  async decode({ codec, name, data }: Vector, times = 1): Promise<Points | DecodeError> {
    const before = this.memory();
    const began = process.cpuUsage();
    let outcome: Points | DecodeError;
    try {
      outcome = await this.decoders.get(codec)!.decode(data, new PointPool());
    } catch (error) {
      if (!(error instanceof DecodeError)) {
        throw error;
      }
      outcome = error;
    }
    const { user, system } = process.cpuUsage(began);
    const took = `${codec}, ${name}: ${data.length} bytes took ${this.memory() - before} bytes and ${user + system} µs`;
    expect(this.memory() - before, took).toBeLessThan(mostBytes);
    expect(user + system, took).toBeLessThan(times * mostCPU);
    return outcome;
  }

  /** Returns the memory of arrays outside of the script heap, and of Draco's heap. */
  private memory(): number {
    return process.memoryUsage().arrayBuffers + this.draco.heap;
  }
}

/** Returns a generator of random numbers with a fixed sequence (mulberry32). */
export function randomOf(seed: number): (below: number) => number {
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
export function mutate(data: Uint8Array, random: (below: number) => number): Uint8Array<ArrayBuffer> {
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
