// What the page and its decoding workers say to each other.

import type { Points } from "../decode/points";

/** What the page tells a worker. */
export type WorkerOrder =
  /** Points have been shown: their memory may be used again. */
  | { type: "recycle"; points: Points }
  /** A message has come on a line that is a data channel, of which each has a number of its own: lines of another connection have the same names. */
  | ({ type: "chunk"; channel: number; data: ArrayBuffer } & TransformOptions)
  /** A data channel has ended. */
  | { type: "closed"; channel: number };

/** What is said with a transform, once for each line of the connection, and with each chunk. */
export interface TransformOptions {
  mid: string;
  /** Frames are decoded; without, they are counted only, which shows what the way to the page carries. */
  decode: boolean;
}

/** One decoded frame of one line. Times are milliseconds since 1970 by this host's clock. */
export interface DecodedFrame {
  type: "frame";
  mid: string;
  quality: number;
  number: number;
  bytes: number;
  /** When the frame was captured, by the publisher's clock; NaN where unknown. */
  captured: number;
  received: number;
  decodeBegan: number;
  decoded: number;
  points: Points;
  /** Complete frames that were passed over since the one before, because a newer one was there. */
  skipped: number;
}

/** A frame that could not be read or decoded. */
export interface FailedFrame {
  type: "failure";
  mid: string;
  message: string;
}

/** A line whose frames come to this worker: until then they would have gone to the browser's own decoder. */
export interface OpenedLine {
  type: "opened";
  mid: string;
}

export type WorkerReport = DecodedFrame | FailedFrame | OpenedLine;
