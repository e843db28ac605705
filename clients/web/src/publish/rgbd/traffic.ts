// Messages between the studio and the encoders of rasters.

import type { Camera } from "../../decode/rgbd/raster";
import type { Level } from "./frames";

/** One tile of an image for an encoder. */
export interface RasterJob {
  number: number;
  captured: number;
  tile: number;
  camera: Camera;
  /** Depths in metres and colours (red, green, blue, opacity) of the rectangle, row by row. The arrays may be longer. */
  depths: Float32Array<ArrayBuffer>;
  colors: Uint8Array<ArrayBuffer>;
  left: number;
  top: number;
  columns: number;
  rows: number;
  /** The qualities to encode, in this order. */
  qualities: { quality: number; level: Level }[];
}

/** An encoder has finished a tile: its memory may be reused. */
export type RasterDone = Pick<RasterJob, "depths" | "colors">;
