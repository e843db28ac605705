/// <reference lib="webworker" />
// A worker that decodes parts of frames for another worker.

import { decoderOf, loadInnerDecoders } from "./decoders";
import type { HelperOrder, HelperReport } from "./helpers";
import { PointPool } from "./points";

declare const self: DedicatedWorkerGlobalScope;

const decoders = loadInnerDecoders();
const pool = new PointPool();
/** Decoders keep working memory, so parts are decoded one at a time. */
let tail: Promise<void> = Promise.resolve();

function report(message: HelperReport, transfer: Transferable[] = []): void {
  self.postMessage(message, transfer);
}

async function decode(job: number, codec: string, data: Uint8Array): Promise<void> {
  try {
    const points = await decoderOf(await decoders, codec).decode(data, pool);
    report({ job, points }, [points.positions.buffer, points.colors.buffer]);
  } catch (error) {
    report({ job, message: error instanceof Error ? error.message : String(error) });
  }
}

self.onmessage = ({ data: order }: MessageEvent<HelperOrder>) => {
  if (order.type === "recycle") {
    pool.give(order.points);
  } else {
    tail = tail.then(() => decode(order.job, order.codec, order.data));
  }
};
