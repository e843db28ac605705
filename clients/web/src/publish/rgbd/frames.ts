// Frames of "rgbd" from rectangles of a depth camera's image; see package pkg/codec/rgbd.

import { checkImage, lengthen } from "../../decode/jpeg";
import { missingBytes } from "../../decode/points";
import { Grid } from "../../decode/rgbd/grid";
import { distortionBytes, fixedBytes, kindFile, kindNone, mostCodeOf, poseBytes } from "../../decode/rgbd/head";
import type { Camera } from "../../decode/rgbd/raster";
import { type HeadContent, writeHead } from "./head";
import { Painter } from "./painter";
import { PlaneEncoder } from "./planes";
import { Reducer, tight, type View } from "./reducer";

/** One quality. */
export interface Level {
  /** A pixel combines 2^reduction × 2^reduction pixels of the camera: 0, 1 or 2. */
  reduction: number;
  /** The distance between depths in metres. */
  step: number;
  /** The quality of colours, 1 to 100. */
  colorQuality: number;
}

/** Encodes images as JPEG: baseline, with halved chroma. quality is 1 to 100. */
export type EncodeImage = (pixels: Uint8ClampedArray<ArrayBuffer>, width: number, height: number, quality: number) => Promise<Uint8Array>;

/** An encoded tile; a tile without points has no data. */
export interface EncodedTile {
  data: Uint8Array<ArrayBuffer>;
  points: number;
}

/** Encodes tiles, one at a time. It keeps its working memory. */
export class FrameEncoder {
  private readonly grid = new Grid();
  private readonly planes = new PlaneEncoder();
  private readonly painter = new Painter();
  private readonly reducer = new Reducer();

  constructor(private readonly encodeImage: EncodeImage) {}

  /** Encodes a view of a camera's image. */
  async encode(camera: Camera, from: View, level: Level): Promise<EncodedTile> {
    const view = tight(this.reducer.reduce(from, level.reduction));
    if (view.columns === 0) {
      return { data: new Uint8Array(0), points: 0 };
    }
    const head = this.fill(camera, view, level);
    const planes = this.planes.encode(this.grid);
    head.planes = planes.length;
    let image: Uint8Array = new Uint8Array(0);
    if (view.colors) {
      head.kind = kindFile;
      image = await this.colors(view, level.colorQuality);
      // Decoders refuse a frame with more pixels than its bytes permit, and a plain wall needs few bytes.
      image = lengthen(image, missingBytes(view.columns * view.rows, fixedBytes + planes.length + image.length));
    }
    const data = new Uint8Array(fixedBytes + poseBytes + distortionBytes + planes.length + image.length);
    const bytes = writeHead(data, head);
    data.set(planes, bytes);
    data.set(image, bytes + planes.length);
    return { data: data.slice(0, bytes + planes.length + image.length), points: head.points };
  }

  /** Fills the grid with the depths of a view, and returns the head but for the sizes. */
  private fill(camera: Camera, { depths, left, top, columns, rows, stride, first }: View, level: Level): HeadContent {
    const { grid } = this;
    const step = Math.fround(level.step);
    grid.reset(columns, rows);
    const { valid, codes } = grid;
    let points = 0;
    let nearest = Infinity;
    let farthest = 0;
    for (let y = 0; y < rows; y++) {
      for (let at = grid.row(y), pixel = first + y * stride, end = at + columns; at < end; at++, pixel++) {
        const depth = depths[pixel]!;
        if (depth > 0) {
          const steps = Math.max(1, Math.floor(depth / step + 0.5));
          nearest = Math.min(nearest, steps);
          farthest = Math.max(farthest, steps);
          valid[at] = 1;
          codes[at] = steps;
          points++;
        }
      }
    }
    const head: HeadContent = {
      growing: false, reduction: level.reduction, kind: kindNone, quality: 0, id: 0, camera, left, top, columns, rows, points, nearest, step, planes: 0,
    };
    if (farthest - nearest > mostCodeOf(head)) {
      throw new Error(`depths are ${farthest - nearest} steps of ${step} m apart, expected at most ${mostCodeOf(head)}`);
    }
    for (let at = grid.first; at < grid.row(rows); at++) {
      if (valid[at] !== 0) {
        codes[at]! -= nearest;
      }
    }
    return head;
  }

  /** Encodes the colours of a view, with those of pixels without a depth replaced. */
  private async colors({ colors, columns, rows, stride, first }: View, quality: number): Promise<Uint8Array> {
    const pixels = new Uint8ClampedArray(4 * columns * rows);
    for (let y = 0; y < rows; y++) {
      const begin = 4 * (first + y * stride);
      pixels.set(colors!.subarray(begin, begin + 4 * columns), 4 * y * columns);
    }
    this.painter.paint(pixels, this.grid);
    // The image is opaque, since JPEG has no opacity.
    for (let i = 3; i < pixels.length; i += 4) {
      pixels[i] = 255;
    }
    const image = await this.encodeImage(pixels, columns, rows, quality);
    checkImage("this browser's images for rgbd", image, columns, rows);
    return image;
  }
}
