/// <reference lib="webworker" />

import { decoderOf, loadDecoders } from "../../../src/decode/decoders";
import { HelperWorkers } from "../../../src/decode/helpers";
import { PointPool } from "../../../src/decode/points";

/** The result for a frame. */
export interface Outcome {
  /** The number of points, 0 after an error. */
  points: number;
  /** The error's class and message, empty without an error. */
  kind: string;
  message: string;
  milliseconds: number;
}

declare const self: DedicatedWorkerGlobalScope;

const decoders = loadDecoders(new HelperWorkers());
const pool = new PointPool();

async function decode(codec: string, data: Uint8Array): Promise<Omit<Outcome, "milliseconds">> {
  try {
    const points = await decoderOf(await decoders, codec).decode(data, pool);
    pool.give(points);
    return { points: points.count, kind: "", message: "" };
  } catch (error) {
    const { name, message } = error instanceof Error ? error : { name: typeof error, message: String(error) };
    return { points: 0, kind: name, message };
  }
}

self.onmessage = async ({ data: { codec, data } }: MessageEvent<{ codec: string; data: Uint8Array }>) => {
  const began = performance.now();
  const outcome = await decode(codec, data);
  self.postMessage({ ...outcome, milliseconds: performance.now() - began } satisfies Outcome);
};
