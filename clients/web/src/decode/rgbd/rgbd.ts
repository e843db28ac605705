import { type ImageFile, Images } from "../images";
import { checkImage, Tables } from "../jpeg";
import { type PointPool, type Points, type RasterDecoder, whiten } from "../points";
import { Grid } from "./grid";
import { depthOf, type Head, kindNone, kindTables, kindWebP, mostCodeOf, parseHead } from "./head";
import { PlaneDecoder } from "./planes";
import type { Raster } from "./raster";
import { RayTables } from "./rays";
import { checkWebP } from "./webp";

/**
 * Decodes "rgbd": the raster of a depth camera; see package pkg/codec/rgbd. The results are those of
 * the decoder in Go, except for colours, which the browser decodes, and the last bits of positions if
 * the lens has a distortion.
 */
export class RGBD implements RasterDecoder {
  private readonly grid = new Grid();
  private readonly planes = new PlaneDecoder();
  private readonly tables = new Tables();
  private readonly rays = new RayTables();
  private readonly ray = new Float64Array(2);
  private readonly images = new Images("rgbd");

  announced(data: Uint8Array): number {
    return parseHead(data).points;
  }

  async decode(data: Uint8Array, pool: PointPool): Promise<Points> {
    const { head, image } = this.read(data);
    const points = pool.take(head.points);
    try {
      const pixels = image && (await this.images.decode(image, head.columns, head.rows));
      this.unproject(head, pixels, points);
    } catch (error) {
      pool.give(points);
      throw error;
    }
    return points;
  }

  async decodeRaster(data: Uint8Array, pool: PointPool): Promise<Raster> {
    const { head, image } = this.read(data);
    const { camera, id, reduction, left, top, columns, rows, step, growing } = head;
    // The browser decodes the image on another thread.
    const pixels = image && this.images.decode(image, columns, rows);
    const depths = pool.takeDepths(columns * rows);
    const points = this.fill(head, depths);
    let colors: Uint8Array<ArrayBuffer> | undefined;
    try {
      const decoded = await pixels;
      if (decoded) {
        colors = pool.takeColors(columns * rows);
        colors.set(decoded.subarray(0, 4 * columns * rows));
      }
    } catch (error) {
      pool.giveDepths(depths);
      throw error;
    }
    return { camera, id, reduction, left, top, columns, rows, points, depths, step, growing, colors };
  }

  /** Decodes head, mask and depths into the grid, and returns the image of the colours, whose form was checked. */
  private read(data: Uint8Array): { head: Head; image: ImageFile | undefined } {
    const head = parseHead(data);
    const planes = head.bytes + head.planes;
    const image = this.fileOf(head, data.subarray(planes));
    this.grid.reset(head.columns, head.rows);
    this.planes.decode(this.grid, data.subarray(head.bytes, planes), head.points, mostCodeOf(head));
    return { head, image };
  }

  /** Stores the depths of the grid, and returns the number of points. */
  private fill(head: Head, depths: Float32Array): number {
    const { grid, ray } = this;
    const { valid, codes, columns, rows } = grid;
    const rays = this.rays.of(head);
    let points = 0;
    for (let y = 0, i = 0; y < rows; y++) {
      for (let x = 0, at = grid.row(y); x < columns; x++, at++, i++) {
        depths[i] = valid[at] === 0 ? 0 : depthOf(head, codes[at]!);
        points += valid[at]!;
      }
    }
    for (let i = 0; !rays.complete && i < columns * rows; i++) {
      rays.at(i % columns, Math.floor(i / columns), ray);
      if (depths[i]! > 0 && Number.isNaN(ray[0]! + ray[1]!)) {
        depths[i] = 0;
        points--;
      }
    }
    return points;
  }

  /** Computes the points of the grid, row by row. Pixels that see no point of the image plane are left out. */
  private unproject(head: Head, pixels: Uint8ClampedArray | undefined, points: Points): void {
    const { grid, ray } = this;
    const { valid, codes, columns, rows } = grid;
    const { positions, colors } = points;
    const rays = this.rays.of(head);
    const [r00, r01, r02, r10, r11, r12, r20, r21, r22] = head.camera.pose.rotation as [number, number, number, number, number, number, number, number, number];
    const [tx, ty, tz] = head.camera.pose.translation as [number, number, number];
    let n = 0;
    for (let y = 0; y < rows; y++) {
      for (let x = 0, at = grid.row(y); x < columns; x++, at++) {
        if (valid[at] === 0) {
          continue;
        }
        rays.at(x, y, ray);
        const across = ray[0]!;
        const down = ray[1]!;
        if (!rays.complete && Number.isNaN(across + down)) {
          continue;
        }
        const z = depthOf(head, codes[at]!);
        positions[n] = tx + (r00 * across - r01 * down - r02) * z;
        positions[n + 1] = ty + (r10 * across - r11 * down - r12) * z;
        positions[n + 2] = tz + (r20 * across - r21 * down - r22) * z;
        if (pixels) {
          const pixel = 4 * (y * columns + x);
          colors[n] = pixels[pixel]!;
          colors[n + 1] = pixels[pixel + 1]!;
          colors[n + 2] = pixels[pixel + 2]!;
        }
        n += 3;
      }
    }
    points.count = n / 3;
    if (!pixels) {
      whiten(points);
    }
  }

  /** Checks the form of a frame's colours, and completes the file; undefined without colours. */
  private fileOf({ kind, quality, columns, rows }: Head, image: Uint8Array): ImageFile | undefined {
    switch (kind) {
      case kindNone:
        return undefined;
      case kindWebP:
        checkWebP("rgbd", image, columns, rows);
        return { data: image as Uint8Array<ArrayBuffer>, type: "image/webp" };
      default:
        checkImage("rgbd", image, columns, rows);
        return { data: kind === kindTables ? this.tables.complete(image, quality) : (image as Uint8Array<ArrayBuffer>), type: "image/jpeg" };
    }
  }
}
