// Messages between the page and its decoding workers.

import type { Points } from "../decode/points";
import type { Raster } from "../decode/rgbd/raster";

/** Messages to a worker. */
export type WorkerOrder =
  /** Frames of depth cameras are delivered as rasters, not as points. */
  | { type: "rasters" }
  /** A frame has been displayed: its memory may be reused. */
  | { type: "recycle"; points: Points; depths: Float32Array<ArrayBuffer> | undefined; colors: Uint8Array<ArrayBuffer> | undefined }
  /**
   * A message arrived on a data channel. Each channel has a unique number: lines of different
   * connections may have the same names.
   */
  | ({ type: "chunk"; channel: number; data: ArrayBuffer } & TransformOptions)
  /**
   * A line carries another track, whose frames have numbers of their own and arrive from a time on, in
   * milliseconds since 1970 by this host's clock.
   */
  | { type: "assigned"; mid: string; since: number }
  /** A line whose frames arrive decrypted, as messages OpenedFrame on a port. */
  | ({ type: "line"; port: MessagePort } & TransformOptions)
  /** A data channel has closed. */
  | { type: "closed"; channel: number };

/** Sent with a transform, once for each line of the connection, and with each chunk. */
export interface TransformOptions {
  mid: string;
  /**
   * Frames are decoded if true. Otherwise they are only counted, which measures the transfer to the
   * page.
   */
  decode: boolean;
}

/** One decoded frame of one line. Times are milliseconds since 1970 by this host's clock. */
export interface DecodedFrame {
  type: "frame";
  mid: string;
  quality: number;
  number: number;
  bytes: number;
  /** The capture time by the server's clock; NaN if unknown. */
  captured: number;
  received: number;
  decodeBegan: number;
  decoded: number;
  /** The points. If there is a raster, only their number is set. */
  points: Points;
  /** The raster of a depth camera, if the page asked for rasters. */
  raster?: Raster | undefined;
  /**
   * The number of complete frames skipped since the previous one because a newer one was available,
   * those included that were complete only after a newer one.
   */
  skipped: number;
  /** The numbers of the frames since the previous one that were complete only after a newer one. */
  late: readonly number[];
}

/** A frame that could not be read or decoded. */
export interface FailedFrame {
  type: "failure";
  mid: string;
  message: string;
}

/**
 * A line with frames that now reach this worker; earlier frames went to the browser's own decoder.
 */
export interface OpenedLine {
  type: "opened";
  mid: string;
}

export type WorkerReport = DecodedFrame | FailedFrame | OpenedLine;
