/// <reference lib="webworker" />
// A worker that takes frames off their lines and decodes them. Frames are read as fast as they come; what is decoded is the newest of each line, so that a
// host that is too slow shows fewer frames instead of older ones. Real video passes to the browser's decoder only where no script stands in its way.

import { decoderOf, loadDecoders } from "../decode/decoders";
import { type Decoder, PointPool, type Points } from "../decode/points";
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
  void read(readable.getReader(), options);
};

async function read(reader: ReadableStreamDefaultReader<{ data: ArrayBuffer }>, { mid, decode }: TransformOptions): Promise<void> {
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    try {
      const arrival = { frame: parseFrame(value.data), received: now() };
      if (decode) {
        queue.put(mid, arrival);
        schedule();
      } else {
        deliver(mid, arrival, pool.take(0), arrival.received, 0);
      }
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
    decodeNext(loaded, next.line, next.item, next.skipped);
  }
};

/** Hands points to the page. */
function deliver(mid: string, { frame, received }: Arrival, points: Points, decodeBegan: number, skipped: number): void {
  const { quality, number, length: bytes, captured } = frame;
  report(
    { type: "frame", mid, quality, number, bytes, captured, received, decodeBegan, decoded: now(), points, skipped },
    [points.positions.buffer, points.colors.buffer],
  );
}

function decodeNext(loaded: ReadonlyMap<string, Decoder>, mid: string, arrival: Arrival, skipped: number): void {
  const { frame } = arrival;
  const began = now();
  try {
    const points = frame.data.length === 0 ? pool.take(0) : decoderOf(loaded, frame.codec).decode(frame.data, pool);
    deliver(mid, arrival, points, began, skipped);
  } catch (error) {
    fail(mid, error);
  }
}

self.onmessage = (event: MessageEvent<WorkerOrder>) => pool.give(event.data.points);
decoders.catch((error: unknown) => fail("", error));
