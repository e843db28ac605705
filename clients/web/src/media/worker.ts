/// <reference lib="webworker" />
// A worker that takes frames off their lines and decodes them. Frames are read as fast as they come; what is decoded is the newest of each line, so that a
// host that is too slow shows fewer frames instead of older ones. Real video passes to the browser's decoder only where no script stands in its way.

import { decoderOf, loadDecoders } from "../decode/decoders";
import { HelperWorkers } from "../decode/helpers";
import { type Decoder, PointPool, type Points } from "../decode/points";
import { ChunkAssembler } from "./chunks";
import { type Frame, parseFrame } from "./frame";
import { NewestQueue } from "./queue";
import type { TransformOptions, WorkerOrder, WorkerReport } from "./traffic";

declare const self: DedicatedWorkerGlobalScope & { onrtctransform: ((event: RTCTransformEvent) => void) | null };

interface Transformer {
  readable: ReadableStream<{ data: ArrayBuffer }>;
  options: TransformOptions;
}

interface RTCTransformEvent extends Event {
  transformer: Transformer;
}

interface Arrival {
  frame: Frame;
  received: number;
}

const decoders: Promise<ReadonlyMap<string, Decoder>> = loadDecoders(new HelperWorkers());
const pool = new PointPool();
const queue = new NewestQueue<Arrival>();
const assemblers = new Map<number, ChunkAssembler>();
/**
 * The newest transformer of each line, so that it is not collected: nothing reads this. Chromium refers to a transformer
 * weakly until the page's thread has connected it to its line. The frames of one that is collected before are lost without
 * an error. A line of another connection replaces the line of its name.
 */
const transformers = new Map<string, Transformer>();
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

self.onrtctransform = ({ transformer }) => {
  const { readable, options } = transformer;
  transformers.set(options.mid, transformer);
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
      arrived(mid, parseFrame(value.data), decode);
    } catch (error) {
      fail(mid, error);
    }
  }
}

/** Takes a chunk of a line that is a data channel. */
function chunk({ mid, decode, channel, data }: TransformOptions & { channel: number; data: ArrayBuffer }): void {
  let assembler = assemblers.get(channel);
  if (!assembler) {
    assembler = new ChunkAssembler();
    assemblers.set(channel, assembler);
  }
  try {
    const frame = assembler.take(data);
    if (frame) {
      arrived(mid, frame, decode);
    }
  } catch (error) {
    fail(mid, error);
  }
}

/** Has a frame decoded that is there, or only counted. */
function arrived(mid: string, frame: Frame, decode: boolean): void {
  const arrival = { frame, received: now() };
  if (decode) {
    queue.put(mid, arrival);
    schedule();
  } else {
    deliver(mid, arrival, pool.take(0), arrival.received, 0);
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
  const next = queue.take();
  if (next) {
    await decodeNext(loaded, next.line, next.item, next.skipped);
  }
  scheduled = false;
  if (next) {
    schedule();
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

async function decodeNext(loaded: ReadonlyMap<string, Decoder>, mid: string, arrival: Arrival, skipped: number): Promise<void> {
  const { frame } = arrival;
  const began = now();
  try {
    const points = frame.data.length === 0 ? pool.take(0) : await decoderOf(loaded, frame.codec).decode(frame.data, pool);
    deliver(mid, arrival, points, began, skipped);
  } catch (error) {
    fail(mid, error);
  }
}

self.onmessage = ({ data: order }: MessageEvent<WorkerOrder>) => {
  switch (order.type) {
    case "recycle":
      pool.give(order.points);
      break;
    case "chunk":
      chunk(order);
      break;
    case "closed":
      assemblers.delete(order.channel);
      break;
  }
};
decoders.catch((error: unknown) => fail("", error));
