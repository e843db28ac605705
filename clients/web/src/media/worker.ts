/// <reference lib="webworker" />
// A worker that takes frames off their lines and decodes them. Frames are read as fast as they come; what is decoded is the newest of each line, so that a
// host that is too slow shows fewer frames instead of older ones. Real video passes to the browser's decoder only where no script stands in its way.

import { decoderOf, loadDecoders } from "../decode/decoders";
import { type Decoder, PointPool } from "../decode/points";
import { type Frame, parseFrame } from "./frame";
import { NewestQueue } from "./queue";
import type { TransformOptions, WorkerOrder, WorkerReport } from "./traffic";

declare const self: DedicatedWorkerGlobalScope & { onrtctransform: ((event: RTCTransformEvent) => void) | null };

interface RTCTransformEvent extends Event {
  transformer: { readable: ReadableStream<{ data: ArrayBuffer }>; options: TransformOptions };
}

interface Arrival {
  frame: Frame;
  received: number;
}

const decoders: Promise<ReadonlyMap<string, Decoder>> = loadDecoders();
const pool = new PointPool();
const queue = new NewestQueue<Arrival>();
// A message to oneself comes behind all frames that are there to be read already; timers would come 4 ms later.
const turn = new MessageChannel();
let scheduled = false;

function now(): number {
  return performance.timeOrigin + performance.now();
}

function report(message: WorkerReport, transfer: Transferable[] = []): void {
  self.postMessage(message, transfer);
}

function fail(mid: string, error: unknown): void {
  report({ type: "failure", mid, message: error instanceof Error ? error.message : String(error) });
}

self.onrtctransform = (event) => {
  const { readable, options } = event.transformer;
  report({ type: "opened", mid: options.mid });
  void read(readable.getReader(), options.mid);
};

async function read(reader: ReadableStreamDefaultReader<{ data: ArrayBuffer }>, mid: string): Promise<void> {
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    try {
      queue.put(mid, { frame: parseFrame(value.data), received: now() });
      schedule();
    } catch (error) {
      fail(mid, error);
    }
  }
}

function schedule(): void {
  if (!scheduled) {
    scheduled = true;
    turn.port2.postMessage(null);
  }
}

turn.port1.onmessage = async () => {
  const loaded = await decoders;
  scheduled = false;
  const next = queue.take();
  if (next) {
    schedule();
    decode(loaded, next.line, next.item, next.skipped);
  }
};

function decode(loaded: ReadonlyMap<string, Decoder>, mid: string, { frame, received }: Arrival, skipped: number): void {
  const decodeBegan = now();
  try {
    const points = frame.data.length === 0 ? pool.take(0) : decoderOf(loaded, frame.codec).decode(frame.data, pool);
    const { quality, number, length: bytes, captured } = frame;
    report(
      { type: "frame", mid, quality, number, bytes, captured, received, decodeBegan, decoded: now(), points, skipped },
      [points.positions.buffer, points.colors.buffer],
    );
  } catch (error) {
    fail(mid, error);
  }
}

self.onmessage = (event: MessageEvent<WorkerOrder>) => pool.give(event.data.points);
decoders.catch((error: unknown) => fail("", error));
