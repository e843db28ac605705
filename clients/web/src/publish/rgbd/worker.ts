/// <reference lib="webworker" />
// A worker that encodes tiles of rasters one at a time.

import type { EncoderOrder, EncoderReport } from "../traffic";
import { FrameEncoder } from "./frames";
import type { RasterDone, RasterJob } from "./traffic";

declare const self: DedicatedWorkerGlobalScope;

let canvas: OffscreenCanvas | undefined;
const encoder = new FrameEncoder(encodeImage);

/** Encodes an image with the browser. */
async function encodeImage(pixels: Uint8ClampedArray<ArrayBuffer>, width: number, height: number, quality: number): Promise<Uint8Array> {
  canvas ??= new OffscreenCanvas(width, height);
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d", { willReadFrequently: true, alpha: false })!;
  context.putImageData(new ImageData(pixels, width, height), 0, 0);
  const blob = await canvas.convertToBlob({ type: "image/jpeg", quality: quality / 100 });
  return new Uint8Array(await blob.arrayBuffer());
}

function report(message: EncoderReport, transfer: Transferable[] = []): void {
  self.postMessage(message, transfer);
}

self.onmessage = ({ data: { jobs } }: MessageEvent<EncoderOrder>) => {
  let tail: Promise<void> = Promise.resolve();
  jobs.onmessage = ({ data: job }: MessageEvent<RasterJob>) => {
    tail = tail.then(async () => {
      try {
        await encode(job);
      } catch (error) {
        report({ type: "failure", message: error instanceof Error ? error.message : String(error) });
      }
      const { depths, colors } = job;
      const done: RasterDone = { depths, colors };
      jobs.postMessage(done, [depths.buffer, colors.buffer]);
    });
  };
};

async function encode({ number, captured, tile, camera, qualities, ...rectangle }: RasterJob): Promise<void> {
  const view = { ...rectangle, first: 0, stride: rectangle.columns };
  for (const { quality, level } of qualities) {
    const began = performance.now();
    const { data, points } = await encoder.encode(camera, view, level);
    report({ type: "encoded", number, captured, tile, quality, points, data, milliseconds: performance.now() - began }, [data.buffer]);
  }
}
