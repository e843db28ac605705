/// <reference lib="webworker" />
// A worker that encodes tiles one at a time.

import wasmURL from "draco3d/draco_encoder.wasm?url";
import { type DracoEncoder, loadEncoder } from "./draco";
import type { EncoderOrder, EncoderReport, TileDone, TileJob } from "./traffic";

declare const self: DedicatedWorkerGlobalScope;

const loading = load();

async function load(): Promise<DracoEncoder> {
  const response = await fetch(wasmURL);
  if (!response.ok) {
    throw new Error(`Draco's encoder cannot be loaded: ${wasmURL} returns ${response.status}`);
  }
  return loadEncoder(await response.arrayBuffer());
}

function report(message: EncoderReport, transfer: Transferable[] = []): void {
  self.postMessage(message, transfer);
}

function fail(error: unknown): void {
  report({ type: "failure", message: error instanceof Error ? error.message : String(error) });
}

self.onmessage = ({ data: { jobs } }: MessageEvent<EncoderOrder>) => {
  let tail: Promise<void> = Promise.resolve();
  jobs.onmessage = ({ data: job }: MessageEvent<TileJob>) => {
    tail = tail.then(async () => {
      try {
        encode(await loading, job);
      } catch (error) {
        fail(error);
      }
      const done: TileDone = { points: job.points };
      jobs.postMessage(done, [job.points.positions.buffer, job.points.colors.buffer]);
    });
  };
};

function encode(draco: DracoEncoder, { number, captured, tile, points, qualities, box }: TileJob): void {
  for (const { quality, count, bits } of qualities) {
    const began = performance.now();
    const data = draco.encode(points, count, bits, box);
    report({ type: "encoded", number, captured, tile, quality, points: count, data, milliseconds: performance.now() - began }, [data.buffer]);
  }
}

loading.catch(fail);
