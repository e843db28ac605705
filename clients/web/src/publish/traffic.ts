// What the page, the studio and its encoders say to each other. The studio is a worker that makes points and cuts them; encoders are workers that make frames of tiles.

import type { Points } from "../decode/points";
import type { Box } from "../signal/messages";
import type { Quality } from "./tiling";

/** Where points come from: a figure that is made up, or pictures of depth that the page hands over. */
export type SourceChoice = { kind: "figure"; seed: number } | { kind: "depth"; lens: import("./depth").Lens };

/** What is published, and how it is made. */
export interface Plan {
  source: SourceChoice;
  box: Box;
  tiles: number;
  qualities: readonly Quality[];
  /** The most points of a capture. */
  points: number;
  fps: number;
}

/** What the page tells the studio. */
export type StudioOrder =
  | { type: "begin"; plan: Plan; encoders: MessagePort[]; mirror: OffscreenCanvas | undefined }
  /** Which qualities of each tile are to be encoded, lowest first, and what share of their points. */
  | { type: "wanted"; tiles: number[][]; share: number }
  /** A picture that was asked for; none where there is no new one. */
  | { type: "picture"; picture: import("./depth").Picture | undefined };

/** What the studio tells the page. Times are milliseconds since 1970 by this host's clock. */
export type StudioReport =
  | { type: "ready" }
  /** A capture was made: of so many points, of which tiles are being encoded. */
  | { type: "captured"; points: number }
  /** No capture was made, since the encoders have not finished the one before the last. */
  | { type: "skipped" }
  /** The next picture is wanted. */
  | { type: "need" }
  | { type: "failure"; message: string };

/** One tile of a capture on its way to an encoder. */
export interface TileJob {
  number: number;
  captured: number;
  tile: number;
  points: Points;
  /** What is to be encoded, in this order: of each quality how many of the first points, at how many bits. */
  qualities: { quality: number; count: number; bits: number }[];
  box: Box;
}

/** An encoder is done with a tile: its memory may be used again. */
export interface TileDone {
  points: Points;
}

/** What the page tells an encoder, once. */
export interface EncoderOrder {
  jobs: MessagePort;
}

/** What an encoder tells the page. */
export type EncoderReport =
  | {
      type: "encoded";
      number: number;
      captured: number;
      tile: number;
      quality: number;
      points: number;
      data: Uint8Array<ArrayBuffer>;
      /** How long encoding took. */
      milliseconds: number;
    }
  | { type: "failure"; message: string };
