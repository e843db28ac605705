// A small picture of the publication as seen by others. The processor draws it: points onto a grid
// of pixels, with the nearest in front.

import type { Points } from "../decode/points";
import type { Box } from "../signal/messages";

/**
 * The area of all dots in relation to the picture, in whole pixels. A person fills a quarter of the
 * picture, and half of the points are on the side that is not seen: dots at random places then leave one
 * pixel in 50 open (e^(−4)).
 */
const filled = 2;
const largestDot = 9;

export class Mirror {
  private readonly context: OffscreenCanvasRenderingContext2D | undefined;
  private readonly image: ImageData | undefined;
  private readonly pixels: Uint32Array = new Uint32Array(0);
  private readonly nearest: Float32Array = new Float32Array(0);

  constructor(
    canvas: OffscreenCanvas | undefined,
    private readonly box: Box,
  ) {
    const context = canvas?.getContext("2d");
    if (canvas && context) {
      this.context = context;
      this.image = context.createImageData(canvas.width, canvas.height);
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.nearest = new Float32Array(this.pixels.length);
    }
  }

  /** Draws the first points, seen from the front. */
  draw(points: Points, count: number): void {
    const { image, pixels, nearest } = this;
    if (!this.context || !image) {
      return;
    }
    const { min, max } = this.box;
    const scale = Math.min((image.width * 1.25) / (max[0] - min[0]), (image.height * 0.96) / (max[1] - min[1]));
    const left = image.width / 2 - (scale * (min[0] + max[0])) / 2;
    const top = image.height / 2 + (scale * (min[1] + max[1])) / 2;
    const dot = Math.min(Math.max(Math.round(Math.sqrt((filled * image.width * image.height) / Math.max(count, 1))), 1), largestDot);
    pixels.fill(0);
    nearest.fill(-Infinity);
    for (let i = 0; i < count; i++) {
      const x = Math.round(left + scale * points.positions[3 * i]!);
      const y = Math.round(top - scale * points.positions[3 * i + 1]!);
      const z = points.positions[3 * i + 2]!;
      if (x < 0 || y < 0 || x + dot > image.width || y + dot > image.height) {
        continue;
      }
      const color = 0xff000000 | (points.colors[3 * i + 2]! << 16) | (points.colors[3 * i + 1]! << 8) | points.colors[3 * i]!;
      for (let dy = 0; dy < dot; dy++) {
        for (let at = (y + dy) * image.width + x, end = at + dot; at < end; at++) {
          if (z > nearest[at]!) {
            nearest[at] = z;
            pixels[at] = color;
          }
        }
      }
    }
    this.context.putImageData(image, 0, 0);
  }
}
