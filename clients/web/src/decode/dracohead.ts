// The start of a point cloud in Draco's bit stream 2.3 (google.github.io/draco/spec, sections 3 to
// 5), in the forms that pages accept: those of encoders of "drco" (pkg/codec/draco, frame.go).
// Numbers are little-endian.

import { boundPoints, DecodeError } from "./points";

/** Name, version and encoder type (point cloud). */
const begin = [0x44, 0x52, 0x41, 0x43, 0x4f, 2, 3, 0];
const methodSequential = 0;
const methodTree = 1;
/**
 * The bytes before the number of points: the begin, the encoder's method, and flags of two bytes.
 */
const pointsOffset = begin.length + 3;
/** Type, data type and components of positions (three floats) and colours (three bytes). */
const attributes = [[0, 9, 3], [2, 2, 3]];
/** The longest unique id of an attribute: a variable-length integer of 32 bits. */
const idBytes = 5;
/** Coders of a sequence: quantised positions, whole colours. */
const sequenceCoders = [2, 1];
/** The highest level of a tree. */
const mostLevel = 6;
/** After the points: minimum position, range, bits. */
const trailerBytes = 17;

/**
 * Returns the number of points that a frame announces. Throws a DecodeError for other forms of
 * Draco, and for more points than boundPoints allows.
 */
export function parseDracoHead(data: Uint8Array): number {
  const refuse = (found: string): DecodeError => new DecodeError(`draco: ${found}`);
  if (data.length < pointsOffset + 6 + trailerBytes) {
    throw refuse(`${data.length} bytes, expected at least ${pointsOffset + 6 + trailerBytes}`);
  }
  const method = data[begin.length]!;
  if (begin.some((b, i) => data[i] !== b) || method > methodTree || data[begin.length + 1] !== 0 || data[begin.length + 2] !== 0) {
    throw refuse(`begins with ${hex(data.subarray(0, pointsOffset))}, expected ${hex(begin)}, then 00 or 01, 00 00: Draco 2.3, point cloud, sequential or kd-tree, no metadata`);
  }
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const points = boundPoints("draco", view.getUint32(pointsOffset, true), data.length);
  let at = pointsOffset + 4;
  const [coders, count] = [data[at]!, data[at + 1]!];
  if (coders !== 1 || count < 1 || count > attributes.length) {
    throw refuse(`${coders} attribute coders with ${count} attributes, expected 1 with 1 or 2`);
  }
  at += 2;
  for (const wanted of attributes.slice(0, count)) {
    if (wanted.some((b, i) => data[at + i] !== b)) {
      throw refuse(`attribute is ${hex(data.subarray(at, at + 3))}, expected ${hex(wanted)} (position of three floats, then perhaps colour of three bytes)`);
    }
    at = behindID(data, at + wanted.length + 1);
  }
  if (method === methodSequential) {
    const wanted = sequenceCoders.slice(0, count);
    if (wanted.some((b, i) => data[at + i] !== b)) {
      throw refuse(`attributes are coded by ${hex(data.subarray(at, at + count))}, expected ${hex(wanted)}`);
    }
  } else if (at >= data.length || data[at]! > mostLevel) {
    throw refuse(`compression level is ${data[at]}, expected 0 to ${mostLevel}`);
  }
  return points;
}

/** Returns the end of the unique id at a position. */
function behindID(data: Uint8Array, at: number): number {
  for (let i = at; i < at + idBytes; i++) {
    if (i < data.length && data[i]! < 0x80) {
      return i + 1;
    }
  }
  throw new DecodeError("draco: attribute has no valid unique id");
}

function hex(bytes: Iterable<number>): string {
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join(" ");
}
