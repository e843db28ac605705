// Views of a depth camera's image, and their reduction by combining pixels.

/** A rectangle of a camera's image, or of the reduced image. */
export interface View {
  /** Depths in metres, 0 for none. */
  depths: Float32Array;
  /** Red, green, blue and opacity of the same pixels; undefined for points without colours. */
  colors: Uint8Array | Uint8ClampedArray | undefined;
  /** The index of the first pixel, and the distance of two rows. */
  first: number;
  stride: number;
  /** The rectangle in pixels of the image, or of the reduced image. */
  left: number;
  top: number;
  columns: number;
  rows: number;
}

/** The largest difference of two depths of one surface, relative to the depth. */
const sameSurface = 0.02;

export class Reducer {
  private depths = new Float32Array(0);
  private colors = new Uint8Array(0);
  private readonly sorted = new Float32Array(16);

  /**
   * Returns a view with one pixel for each square of 2^reduction pixels. A pixel has a depth if at
   * least half of its pixels have one: the mean of the pixels on the surface of the median. The colour
   * is the mean of the same pixels. The result is valid until the next call.
   */
  reduce(from: View, reduction: number): View {
    if (reduction === 0) {
      return from;
    }
    const edge = 1 << reduction;
    const [left, top] = [Math.floor(from.left / edge), Math.floor(from.top / edge)];
    const columns = Math.ceil((from.left + from.columns) / edge) - left;
    const rows = Math.ceil((from.top + from.rows) / edge) - top;
    if (this.depths.length < columns * rows) {
      this.depths = new Float32Array(columns * rows);
      this.colors = new Uint8Array(4 * columns * rows);
    }
    for (let y = 0, i = 0; y < rows; y++) {
      for (let x = 0; x < columns; x++, i++) {
        this.combine(from, x * edge, y * edge, edge, i);
      }
    }
    return { depths: this.depths, colors: from.colors && this.colors, first: 0, stride: columns, left, top, columns, rows };
  }

  /** Stores depth and colour of the square of pixels with the given upper left corner. */
  private combine({ depths, colors, first, stride, columns, rows }: View, left: number, top: number, edge: number, into: number): void {
    const { sorted } = this;
    const right = Math.min(columns, left + edge);
    const bottom = Math.min(rows, top + edge);
    let found = 0;
    for (let y = top; y < bottom; y++) {
      for (let at = first + y * stride + left, end = at + right - left; at < end; at++) {
        const depth = depths[at]!;
        if (depth > 0) {
          let place = found++;
          for (; place > 0 && sorted[place - 1]! > depth; place--) {
            sorted[place] = sorted[place - 1]!;
          }
          sorted[place] = depth;
        }
      }
    }
    this.depths[into] = 0;
    if (found === 0 || 2 * found < (right - left) * (bottom - top)) {
      return;
    }
    const median = sorted[found >> 1]!;
    const reach = sameSurface * median;
    let [sum, count, red, green, blue] = [0, 0, 0, 0, 0];
    for (let y = top; y < bottom; y++) {
      for (let at = first + y * stride + left, end = at + right - left; at < end; at++) {
        const depth = depths[at]!;
        if (!(depth > 0 && Math.abs(depth - median) <= reach)) {
          continue;
        }
        sum += depth;
        count++;
        if (colors) {
          red += colors[4 * at]!;
          green += colors[4 * at + 1]!;
          blue += colors[4 * at + 2]!;
        }
      }
    }
    this.depths[into] = sum / count;
    this.colors[4 * into] = Math.round(red / count);
    this.colors[4 * into + 1] = Math.round(green / count);
    this.colors[4 * into + 2] = Math.round(blue / count);
  }
}

/** Returns the smallest view with the same points; a view without points has no columns. */
export function tight(view: View): View {
  const { depths, first, stride, columns, rows } = view;
  let [left, top, right, bottom] = [columns, rows, 0, 0];
  for (let y = 0; y < rows; y++) {
    for (let x = 0, at = first + y * stride; x < columns; x++, at++) {
      if (depths[at]! > 0) {
        left = Math.min(left, x);
        right = Math.max(right, x + 1);
        top = Math.min(top, y);
        bottom = y + 1;
      }
    }
  }
  if (bottom === 0) {
    return { ...view, columns: 0, rows: 0 };
  }
  return { ...view, first: first + top * stride + left, left: view.left + left, top: view.top + top, columns: right - left, rows: bottom - top };
}
