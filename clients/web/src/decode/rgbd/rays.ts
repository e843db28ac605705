import { deproject } from "./distortion";
import type { Camera, Raster } from "./raster";

/** The distance of the pixels whose rays are computed exactly if the lens has a distortion. */
export const nodeEdge = 8;

/** The part of a camera's image that a tile shows. */
export type Window = Pick<Raster, "camera" | "reduction" | "left" | "top" | "columns" | "rows">;

/** Returns the position of a column of the reduced image in pixels of the camera; of a row likewise. */
export function pixelOf(reduction: number, column: number): number {
  return (column + 0.5) * 2 ** reduction - 0.5;
}

/** The points of the image plane at depth 1, y down, that the pixels of a tile see. */
export class Rays {
  /** Every pixel sees a point. */
  complete = true;
  /** The coordinates by column and row, for a camera without distortion. */
  readonly xs: Float64Array;
  readonly ys: Float64Array;
  /**
   * The exact points x, y at multiples of nodeEdge pixels of the camera, row by row from node left,
   * top, for a camera with a distortion; NaN if there is none. Points between are interpolated: first
   * along u, then along v.
   */
  readonly nodes: Float64Array;
  readonly left: number;
  readonly top: number;
  /** The number of nodes in a row; 0 without a distortion. */
  readonly columns: number;
  private readonly reduction: number;
  private readonly origin: readonly [number, number];

  constructor({ camera, reduction, left, top, columns, rows }: Window) {
    this.reduction = reduction;
    this.origin = [left, top];
    const plain = !camera.distortion;
    this.xs = Float64Array.from({ length: plain ? columns : 0 }, (_, x) => (pixelOf(reduction, left + x) - camera.cx) / camera.fx);
    this.ys = Float64Array.from({ length: plain ? rows : 0 }, (_, y) => (pixelOf(reduction, top + y) - camera.cy) / camera.fy);
    const node = (pixel: number): number => Math.floor(pixelOf(reduction, pixel) / nodeEdge);
    this.left = node(left);
    this.top = node(top);
    this.columns = plain ? 0 : node(left + columns - 1) + 2 - this.left;
    this.nodes = new Float64Array(2 * this.columns * (node(top + rows - 1) + 2 - this.top));
    this.find(camera);
  }

  private find(camera: Camera): void {
    for (let i = 0; i < this.nodes.length; i += 2) {
      const column = (i / 2) % this.columns;
      const row = (i / 2 - column) / this.columns;
      const point = deproject(camera, (this.left + column) * nodeEdge, (this.top + row) * nodeEdge);
      this.complete &&= point !== undefined;
      this.nodes.set(point ?? [NaN, NaN], i);
    }
  }

  /** Stores x and y of the point that a pixel of the rectangle sees; NaN if there is none. */
  at(column: number, row: number, into: Float64Array): void {
    if (this.columns === 0) {
      into[0] = this.xs[column]!;
      into[1] = this.ys[row]!;
      return;
    }
    const { nodes, reduction, origin } = this;
    const u = pixelOf(reduction, origin[0] + column) / nodeEdge;
    const v = pixelOf(reduction, origin[1] + row) / nodeEdge;
    const [left, top] = [Math.floor(u), Math.floor(v)];
    const above = 2 * ((top - this.top) * this.columns + left - this.left);
    const below = above + 2 * this.columns;
    for (let axis = 0; axis < 2; axis++) {
      const first = nodes[above + axis]! + (u - left) * (nodes[above + 2 + axis]! - nodes[above + axis]!);
      const second = nodes[below + axis]! + (u - left) * (nodes[below + 2 + axis]! - nodes[below + axis]!);
      into[axis] = first + (v - top) * (second - first);
    }
  }
}

/** The largest numbers of tables, and of numbers in a table, that are kept: 16 MB together. */
const mostTables = 64;
const mostNumbers = 1 << 15;

/** Keeps the rays of tiles while their lenses and rectangles stay the same. */
export class RayTables {
  private readonly tables = new Map<string, Rays>();

  /** Returns the rays of a tile; the same object for the same lens and rectangle while it is kept. */
  of(window: Window): Rays {
    const key = keyOf(window);
    const known = this.tables.get(key);
    if (known) {
      return known;
    }
    const rays = new Rays(window);
    if (rays.xs.length + rays.ys.length + rays.nodes.length <= mostNumbers) {
      this.tables.set(key, rays);
    }
    for (const oldest of this.tables.keys()) {
      if (this.tables.size <= mostTables) {
        break;
      }
      this.tables.delete(oldest);
    }
    return rays;
  }
}

/** Returns a text that is the same for the same lens and rectangle. */
function keyOf({ camera: { fx, fy, cx, cy, distortion }, reduction, left, top, columns, rows }: Window): string {
  return [fx, fy, cx, cy, reduction, left, top, columns, rows, distortion?.model, distortion?.radius, ...(distortion?.coefficients ?? [])].join();
}
