// Messages between the page, the studio and its encoders. The studio is a worker that makes points
// and divides them; encoders are workers that make frames of tiles.

import type { Points } from "../decode/points";
import type { Box } from "../signal/messages";
import type { RasterTile } from "./rgbd/cutter";
import type { Quality } from "./tiling";

/** The source of points: a generated figure, depth pictures from the page, or points from the page. */
export type SourceChoice = { kind: "figure"; seed: number } | { kind: "depth"; lens: import("./depth").Lens } | { kind: "points" };

export type Codec = "draco" | "rgbd";

/** The content and the settings of a publication. */
export interface Plan {
  source: SourceChoice;
  box: Box;
  tiles: number;
  /** "rgbd" sends the images of a source of depth pictures, "draco" (the default) points. */
  codec?: Codec;
  qualities: readonly Quality[];
  /** The maximum number of points of a capture of codec "draco". */
  points: number;
  fps: number;
}

/** Messages to the studio. */
export type StudioOrder =
  | { type: "begin"; plan: Plan; encoders: MessagePort[]; mirror: OffscreenCanvas | undefined }
  /** The qualities of each tile to encode, lowest first, and the share of their points. */
  | { type: "wanted"; tiles: number[][]; share: number }
  /** A requested picture, undefined if there is no new one; or points, which are not requested. */
  | { type: "picture"; picture: import("./depth").Picture | undefined };

/** Messages from the studio. Times are milliseconds since 1970 by this host's clock. */
export type StudioReport =
  | { type: "ready" }
  /** The tiles of codec "rgbd" are known, before "ready". */
  | { type: "tiles"; tiles: RasterTile[] }
  /** A capture with this number of points was made, and its tiles are being encoded. */
  | { type: "captured"; points: number }
  /** No capture was made, since the encoders have not finished the one before the last. */
  | { type: "skipped" }
  /** The next picture is requested. */
  | { type: "need" }
  | { type: "failure"; message: string };

/** One tile of a capture for an encoder. */
export interface TileJob {
  number: number;
  captured: number;
  tile: number;
  points: Points;
  /**
   * The parts to encode, in this order: for each quality the number of points from the start, and
   * the bits.
   */
  qualities: { quality: number; count: number; bits: number }[];
  box: Box;
}

/** An encoder has finished a tile: its memory may be reused. */
export interface TileDone {
  points: Points;
}

/** The message from the page to an encoder, sent once. */
export interface EncoderOrder {
  jobs: MessagePort;
}

/** Messages from an encoder to the page. */
export type EncoderReport =
  | {
      type: "encoded";
      number: number;
      captured: number;
      tile: number;
      quality: number;
      points: number;
      data: Uint8Array<ArrayBuffer>;
      /** The duration of the encoding. */
      milliseconds: number;
    }
  | { type: "failure"; message: string };
