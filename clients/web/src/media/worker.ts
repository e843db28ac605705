/// <reference lib="webworker" />
// A worker that reads frames from their lines and decodes them. Frames are read immediately, but
// only the newest of each line is decoded, so that a slow host shows fewer frames instead of older
// ones. Frames that are not wrapped are true H264 or VP8, and continue to the browser's decoder.

import { decoderOf, loadDecoders } from "../decode/decoders";
import { HelperWorkers } from "../decode/helpers";
import { type Decoder, decodesRasters, PointPool, type Points } from "../decode/points";
import type { Raster } from "../decode/rgbd/raster";
import { ChunkAssembler } from "./chunks";
import { type Frame, parseFrame, wrapped } from "./frame";
import { FrameOrder } from "./order";
import { NewestQueue } from "./queue";
import type { TransformOptions, WorkerOrder, WorkerReport } from "./traffic";
import type { OpenedFrame } from "../sframe/traffic";

declare const self: DedicatedWorkerGlobalScope & { onrtctransform: ((event: RTCTransformEvent) => void) | null };

interface Encoded {
  data: ArrayBuffer;
}

interface Transformer {
  readable: ReadableStream<Encoded>;
  writable: WritableStream<Encoded>;
  options: TransformOptions;
}

interface RTCTransformEvent extends Event {
  transformer: Transformer;
}

interface Arrival {
  frame: Frame;
  received: number;
}

/** The decoded content of a frame. */
interface Content {
  points: Points;
  raster?: Raster | undefined;
}

const decoders: Promise<ReadonlyMap<string, Decoder>> = loadDecoders(new HelperWorkers());
const pool = new PointPool();
const queue = new NewestQueue<Arrival>();
const assemblers = new Map<number, ChunkAssembler>();
/** The order of the frames of each line's present track. */
const orders = new Map<string, FrameOrder>();
/** The time from which frames of each line's present track arrive. */
const begins = new Map<string, number>();
/**
 * The newest transformer of each line. The map prevents garbage collection and is never read.
 * Chromium holds a transformer with a weak reference until the page's thread has connected it to
 * its line. If it is collected before, its frames are lost without an error. A line of another
 * connection replaces the line of the same name.
 */
const transformers = new Map<string, Transformer>();
// A message to the worker itself is queued after all frames that are ready to be read; a timer
// would fire 4 ms later.
const turn = new MessageChannel();
let scheduled = false;
/** The page draws rasters. */
let rasters = false;

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
  const { readable, writable, options } = transformer;
  transformers.set(options.mid, transformer);
  orders.delete(options.mid);
  report({ type: "opened", mid: options.mid });
  void read(readable.getReader(), writable.getWriter(), options);
};

async function read(reader: ReadableStreamDefaultReader<Encoded>, writer: WritableStreamDefaultWriter<Encoded>, { mid, decode }: TransformOptions): Promise<void> {
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    if (!wrapped(new Uint8Array(value.data))) {
      // The write fails if the line ends meanwhile.
      writer.write(value).catch(() => {});
      continue;
    }
    try {
      arrived(mid, parseFrame(value.data), decode);
    } catch (error) {
      fail(mid, error);
    }
  }
}

/** Adds a chunk of a line that is a data channel. */
function chunk({ mid, decode, channel, data }: TransformOptions & { channel: number; data: ArrayBuffer }): void {
  let assembler = assemblers.get(channel);
  if (!assembler) {
    assembler = new ChunkAssembler();
    assemblers.set(channel, assembler);
    orders.delete(mid);
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

function orderOf(mid: string): FrameOrder {
  let order = orders.get(mid);
  if (!order) {
    order = new FrameOrder();
    orders.set(mid, order);
  }
  return order;
}

/**
 * Starts decoding a received frame, or only counts it. A frame that completes after a newer one is
 * counted, and not shown: the picture would go back. A frame of the line's former track is dropped.
 */
function arrived(mid: string, frame: Frame, decode: boolean, received = now()): void {
  if (received < (begins.get(mid) ?? 0) || orderOf(mid).place(frame.number) !== "newest") {
    return;
  }
  const arrival = { frame, received };
  if (decode) {
    queue.put(mid, arrival);
    schedule();
  } else {
    deliver(mid, arrival, { points: pool.take(0) }, arrival.received, 0);
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

/** Sends a frame to the page. */
function deliver(mid: string, { frame, received }: Arrival, { points, raster }: Content, decodeBegan: number, replaced: number): void {
  const { quality, number, length: bytes, captured } = frame;
  const late = orderOf(mid).takeLate();
  const memory: Transferable[] = [points.positions.buffer, points.colors.buffer];
  if (raster) {
    memory.push(raster.depths.buffer, ...(raster.colors ? [raster.colors.buffer] : []));
  }
  report({ type: "frame", mid, quality, number, bytes, captured, received, decodeBegan, decoded: now(), points, raster, skipped: replaced + late.length, late }, memory);
}

async function decodeNext(loaded: ReadonlyMap<string, Decoder>, mid: string, arrival: Arrival, skipped: number): Promise<void> {
  const began = now();
  try {
    deliver(mid, arrival, await decode(loaded, arrival.frame), began, skipped);
  } catch (error) {
    fail(mid, error);
  }
}

async function decode(loaded: ReadonlyMap<string, Decoder>, { codec, data }: Frame): Promise<Content> {
  if (data.length === 0) {
    return { points: pool.take(0) };
  }
  const decoder = decoderOf(loaded, codec);
  if (!rasters || !decodesRasters(decoder)) {
    return { points: await decoder.decode(data, pool) };
  }
  const raster = await decoder.decodeRaster(data, pool);
  const points = pool.take(0);
  points.count = raster.points;
  return { points, raster };
}

self.onmessage = ({ data: order }: MessageEvent<WorkerOrder>) => {
  switch (order.type) {
    case "recycle":
      pool.give(order.points);
      if (order.depths) {
        pool.giveDepths(order.depths);
      }
      if (order.colors) {
        pool.giveColors(order.colors);
      }
      break;
    case "rasters":
      rasters = true;
      break;
    case "chunk":
      chunk(order);
      break;
    case "assigned":
      orders.delete(order.mid);
      begins.set(order.mid, order.since);
      break;
    case "line":
      orders.delete(order.mid);
      order.port.onmessage = ({ data: { frame, received } }: MessageEvent<OpenedFrame>) => arrived(order.mid, frame, order.decode, received);
      break;
    case "closed":
      assemblers.delete(order.channel);
      break;
  }
};
decoders.catch((error: unknown) => fail("", error));
