import { Images } from "./images";
import { checkImage } from "./jpeg";
import { boundPoints, DecodeError, type Decoder, type PointPool, type Points, whiten } from "./points";
import { Section } from "./section";

const names = "<PCL-OCT-CODECV2-COMPRESSED><PCL-OCT-COMPRESSED>";
const headerBytes = 169;
/** The largest depth of the octree: 65,536 leaves along an edge. */
const mostDepth = 16;
/** The tolerance of the library: the smallest float32 above 1, less 1. */
const epsilon = 2 ** -23;
const largestFloat = 3.4028234663852886e38;
const imageWidth = 256;
const blockEdge = 8;
/** Bounds of the bytes of an image: for each pixel, and for its tables. */
const pixelBytes = 3;
const tableBytes = 4096;

/** The values of a frame's header that decoding needs. */
interface Header {
  count: number;
  branches: number;
  colored: boolean;
  depth: number;
  /** The edge of a leaf and the lower corner of the octree in metres. */
  edge: number;
  low: [number, number, number];
}

/** Decodes "cwi1", VR2Gather's octree with JPEG colours; see package pkg/codec/cwi1. It keeps its working memory. */
export class CWI1 implements Decoder {
  private readonly images = new Images("cwi1");
  private readonly section = new Section("cwi1");

  announced(data: Uint8Array): number {
    return parseHeader(data).count;
  }

  async decode(data: Uint8Array, pool: PointPool): Promise<Points> {
    const header = parseHeader(data);
    const points = pool.take(header.count);
    try {
      this.section.start(data.subarray(headerBytes));
      readTree(points, header, this.section);
      let rest = this.section.rest;
      if (header.colored) {
        rest = await this.paint(points, rest);
      } else {
        whiten(points);
      }
      if (rest.length > 0) {
        throw new DecodeError(`cwi1: ${rest.length} bytes behind the points, expected none`);
      }
    } catch (error) {
      pool.give(points);
      throw error;
    }
    if (isEmpty(points)) {
      points.count = 0;
    }
    return points;
  }

  /** Reads the colours and returns the data behind them. */
  private async paint(points: Points, data: Uint8Array): Promise<Uint8Array> {
    const height = Math.floor(points.count / imageWidth) + 1;
    const most = pixelBytes * imageWidth * height + tableBytes;
    const size = data.length < 8 ? 0n : new DataView(data.buffer, data.byteOffset).getBigUint64(0, true);
    if (size < 1n || size > BigInt(most)) {
      throw new DecodeError(`cwi1: an image of ${imageWidth}×${height} pixels has ${size} bytes, expected 1 to ${most}`);
    }
    this.section.start(data.subarray(8));
    const image = new Uint8Array(Number(size));
    for (let i = 0; i < image.length; i++) {
      image[i] = this.section.next();
    }
    checkImage("cwi1", image, imageWidth, height);
    const rest = this.section.rest;
    const pixels = await this.images.decode({ data: image, type: "image/jpeg" }, imageWidth, height);
    for (let i = 0; i < points.count; i++) {
      const at = 4 * pixelOf(i, height);
      // The first channel of the image is blue.
      points.colors[3 * i] = pixels[at + 2]!;
      points.colors[3 * i + 1] = pixels[at + 1]!;
      points.colors[3 * i + 2] = pixels[at]!;
    }
    return rest;
  }
}

/** Reports whether the points are the single one by which the library describes a cloud without points. */
function isEmpty({ count, positions, colors }: Points): boolean {
  return count === 1 && positions.subarray(0, 3).every((v) => Math.abs(v) < 0.01) && colors.subarray(0, 3).every((v) => v < 2);
}

function parseHeader(data: Uint8Array): Header {
  if (data.length < headerBytes || String.fromCharCode(...data.subarray(0, names.length)) !== names) {
    throw new DecodeError(`cwi1: ${data.length} bytes without its header`);
  }
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const form = [view.getUint8(52), view.getUint8(53), view.getUint8(54)];
  if (form[0] !== 1 || form[1] !== 1 || form[2]! > 1) {
    throw new DecodeError(`cwi1: octree is ${form.join(" ")}, expected 1 1, then 0 or 1: whole, one point for each leaf, colours`);
  }
  const colored = form[2] === 1;
  const [points, coding] = [view.getUint8(149), view.getUint32(152, true)];
  if (points !== 0 || (colored && coding !== 1)) {
    throw new DecodeError(`cwi1: points have the form ${points} and colours the form ${coding}, expected 0 and 1`);
  }
  const count = boundPoints("cwi1", Number(view.getBigUint64(55, true)), data.length);
  // Real trees have about as many branches as points.
  const branches = boundPoints("cwi1", Number(view.getBigUint64(161, true)), data.length);
  const edge = view.getFloat64(63, true);
  const low: [number, number, number] = [view.getFloat64(80, true), view.getFloat64(88, true), view.getFloat64(96, true)];
  const high = [view.getFloat64(104, true), view.getFloat64(112, true), view.getFloat64(120, true)];
  if (!low.every((v, axis) => Math.abs(v) <= largestFloat && Math.abs(high[axis]!) <= largestFloat && high[axis]! > v)) {
    throw new DecodeError(`cwi1: box reaches from ${low.join(", ")} to ${high.join(", ")} m`);
  }
  const longest = Math.max(...low.map((v, axis) => high[axis]! - v));
  if (!(edge > 0 && longest / edge <= 2 ** mostDepth + 1)) {
    throw new DecodeError(`cwi1: leaves of ${edge} m in a box of ${longest} m, expected at most ${2 ** mostDepth} along an edge`);
  }
  // The octree is a cube whose edge is a power of two of leaves, with the box in its middle.
  const leaves = Math.max(Math.ceil((longest - epsilon) / edge), 2);
  const depth = Math.min(Math.ceil(Math.log2(leaves) - epsilon), mostDepth);
  const side = edge * 2 ** depth;
  low.forEach((v, axis) => {
    const over = (side - (high[axis]! - v)) / 2;
    low[axis] = over > epsilon ? v - over : v;
  });
  return { count, branches, colored, depth, edge, low };
}

/** Stores the centres of the octree's leaves. */
function readTree(points: Points, { count, branches, depth, edge, low }: Header, section: Section): void {
  /** The children of each branch on the path that are not yet visited. */
  const children = new Uint8Array(mostDepth);
  let [x, y, z] = [0, 0, 0];
  let level = 0;
  let read = 0;
  let n = 0;
  const branch = (): number => {
    if (read === branches) {
      throw new DecodeError(`cwi1: more than the ${branches} branches of the header`);
    }
    read++;
    const bits = section.next();
    if (bits === 0) {
      throw new DecodeError(`cwi1: branch ${read} has no children`);
    }
    return bits;
  };
  children[0] = branch();
  for (;;) {
    const left = children[level]!;
    if (left === 0) {
      if (level === 0) {
        break;
      }
      level--;
      x >>= 1;
      y >>= 1;
      z >>= 1;
      continue;
    }
    children[level] = left & (left - 1);
    const child = 31 - Math.clz32(left & -left);
    const [cx, cy, cz] = [(x << 1) | (child >> 2), (y << 1) | ((child >> 1) & 1), (z << 1) | (child & 1)];
    if (level === depth - 1) {
      if (n === count) {
        throw new DecodeError(`cwi1: more than the ${count} points of the header`);
      }
      points.positions[3 * n] = (cx + 0.5) * edge + low[0];
      points.positions[3 * n + 1] = (cy + 0.5) * edge + low[1];
      points.positions[3 * n + 2] = (cz + 0.5) * edge + low[2];
      n++;
      continue;
    }
    level++;
    [x, y, z] = [cx, cy, cz];
    children[level] = branch();
  }
  if (n !== count || read !== branches) {
    throw new DecodeError(`cwi1: ${n} points in ${read} branches, expected ${count} in ${branches}`);
  }
}

/**
 * Returns the position of a point's pixel in an image of the given height. Points fill blocks of 8×8 pixels, in rows that
 * run alternately to the right and to the left. The last row of blocks has as many rows as remain.
 */
function pixelOf(point: number, height: number): number {
  const stripe = imageWidth * blockEdge;
  const top = Math.floor(point / stripe) * blockEdge;
  const rows = Math.min(blockEdge, height - top);
  const block = Math.floor((point % stripe) / (blockEdge * rows));
  const inside = (point % stripe) % (blockEdge * rows);
  const across = inside % blockEdge;
  const column = Math.floor(point / blockEdge) % 2 === 1 ? blockEdge - 1 - across : across;
  return (top + Math.floor(inside / blockEdge)) * imageWidth + block * blockEdge + column;
}
