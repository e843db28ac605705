// Images of colours, decoded by the browser.

import { DecodeError } from "./points";

/** A file whose form was checked. */
export interface ImageFile {
  data: Uint8Array<ArrayBuffer>;
  type: "image/jpeg" | "image/webp";
}

/** Decodes the images of a codec. It keeps its working memory. */
export class Images {
  private canvas: OffscreenCanvas | undefined;
  private yuv = new Uint8Array(0);
  private rgba = new Uint8ClampedArray(0);

  constructor(private readonly codec: string) {}

  /** Returns four values for each pixel: red, green, blue and opacity. */
  async decode(file: ImageFile, width: number, height: number): Promise<Uint8ClampedArray> {
    try {
      return (await this.planes(file, width, height)) ?? (await this.pixels(file, width, height));
    } catch (error) {
      throw this.noImage(error);
    }
  }

  private noImage(error: unknown): DecodeError {
    return new DecodeError(`${this.codec}: the colours are no image: ${error instanceof Error ? error.message : String(error)}`);
  }

  /**
   * Returns luma and chroma of the image if the browser offers these. A chroma value then applies
   * to exactly four points, without interpolation with other points that are elsewhere.
   */
  private async planes({ data, type }: ImageFile, width: number, height: number): Promise<Uint8ClampedArray | undefined> {
    if (typeof ImageDecoder === "undefined" || type !== "image/jpeg") {
      return undefined;
    }
    const decoder = new ImageDecoder({ data, type, colorSpaceConversion: "none" });
    let image: VideoFrame | undefined;
    try {
      ({ image } = await decoder.decode());
      if (image.format !== "I420") {
        return undefined;
      }
      const half = Math.ceil(width / 2);
      const luma = width * height;
      const chroma = half * Math.ceil(height / 2);
      const layout = [{ offset: 0, stride: width }, { offset: luma, stride: half }, { offset: luma + chroma, stride: half }];
      const size = luma + 2 * chroma;
      this.yuv = this.yuv.length < size ? new Uint8Array(size) : this.yuv;
      await image.copyTo(this.yuv, { layout });
      return this.convert(width, height);
    } finally {
      image?.close();
      decoder.close();
    }
  }

  /** Converts luma and chroma to red, green and blue (JFIF, ITU-T T.871 section 7). */
  private convert(width: number, height: number): Uint8ClampedArray {
    const { yuv } = this;
    const luma = width * height;
    const half = Math.ceil(width / 2);
    const chroma = half * Math.ceil(height / 2);
    this.rgba = this.rgba.length < 4 * luma ? new Uint8ClampedArray(4 * luma).fill(255) : this.rgba;
    for (let y = 0, i = 0; y < height; y++) {
      for (let x = 0; x < width; x++, i++) {
        const at = luma + (y >> 1) * half + (x >> 1);
        const blue = yuv[at]! - 128;
        const red = yuv[at + chroma]! - 128;
        this.rgba[4 * i] = yuv[i]! + 1.402 * red;
        this.rgba[4 * i + 1] = yuv[i]! - 0.344136 * blue - 0.714136 * red;
        this.rgba[4 * i + 2] = yuv[i]! + 1.772 * blue;
      }
    }
    return this.rgba;
  }

  private async pixels(file: ImageFile, width: number, height: number): Promise<Uint8ClampedArray> {
    const bitmap = await bitmapOf(file);
    try {
      this.canvas ??= new OffscreenCanvas(width, height);
      const canvas = this.canvas;
      [canvas.width, canvas.height] = [Math.max(canvas.width, width), Math.max(canvas.height, height)];
      const context = canvas.getContext("2d", { willReadFrequently: true })!;
      context.drawImage(bitmap, 0, 0);
      return context.getImageData(0, 0, width, height).data;
    } finally {
      bitmap.close();
    }
  }
}

function bitmapOf({ data, type }: ImageFile): Promise<ImageBitmap> {
  return createImageBitmap(new Blob([data], { type }), { colorSpaceConversion: "none", premultiplyAlpha: "none" });
}
