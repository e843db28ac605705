// Parsing of received frames: the server wraps frames as VP8 key frames, because browsers do not
// assemble other frames (docs/payload.md, "Browsers").

/** The header of a VP8 key frame before every frame. */
const keyFrameHeader = [0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 0x10, 0x00, 0x10, 0x00];
const descriptorSize = 16;
const prefixSize = 12;

/** Seconds from 1900, the start of NTP's first era, to 1970. */
const ntpToUnix = 2_208_988_800;
const eraSeconds = 2 ** 32;

export class FrameError extends Error {}

export interface Frame {
  quality: number;
  /** The number of the capture instant, the same for all tiles and qualities of a publication. */
  number: number;
  /** The length in bytes of the frame as sent, including the prefix. */
  length: number;
  /** Four characters of the codec's name, empty if the frame has none. */
  codec: string;
  /** The capture time in milliseconds since 1970 by the server's clock, NaN if unknown. */
  captured: number;
  /** The codec's data; empty for a tile without points. */
  data: Uint8Array;
}

/** Reports whether a frame is wrapped as a VP8 key frame. */
export function wrapped(bytes: Uint8Array): boolean {
  return keyFrameHeader.every((b, i) => bytes[i] === b);
}

/** Removes the wrapping from a frame of payload v1. Throws a FrameError with the cause. */
export function parseFrame(encoded: ArrayBuffer): Frame {
  const bytes = new Uint8Array(encoded);
  if (bytes.length < keyFrameHeader.length + descriptorSize || !wrapped(bytes)) {
    throw new FrameError(`frame of ${bytes.length} bytes is not wrapped as a VP8 key frame`);
  }
  const view = new DataView(encoded, keyFrameHeader.length);
  const flags = view.getUint8(0);
  if (flags >> 4 !== 1) {
    throw new FrameError(`payload version is ${flags >> 4}, expected 1`);
  }
  const length = view.getUint32(12);
  const body = bytes.subarray(keyFrameHeader.length + descriptorSize);
  if (body.length !== length) {
    throw new FrameError(`frame has ${body.length} bytes, expected ${length}`);
  }
  return readFrame({ prefixed: (flags & 1) !== 0, quality: view.getUint8(1), number: view.getUint32(8) }, body);
}

/**
 * Reads the start of a frame's data: the prefix, or VR2Gather's header. Throws a FrameError with
 * the cause.
 */
export function readFrame(said: { prefixed: boolean; quality: number; number: number }, body: Uint8Array): Frame {
  const { length } = body;
  const frame: Frame = { quality: said.quality, number: said.number, length, codec: "", captured: NaN, data: body };
  if (said.prefixed) {
    if (length < prefixSize) {
      throw new FrameError(`prefixed frame of ${length} bytes, expected at least ${prefixSize}`);
    }
    const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
    frame.codec = String.fromCharCode(...body.subarray(0, 4));
    frame.captured = fromNTP(view.getUint32(4), view.getUint32(8));
    frame.data = body.subarray(prefixSize);
  } else if (length >= vr2gatherSize) {
    parseVR2Gather(frame, body);
  }
  return frame;
}

/**
 * Converts an NTP timestamp to milliseconds since 1970, NaN for 0. Seconds with the highest bit
 * clear belong to the era from 2036 on.
 */
function fromNTP(seconds: number, fraction: number): number {
  if (seconds === 0 && fraction === 0) {
    return NaN;
  }
  const era = seconds >>> 31 ? 0 : eraSeconds;
  return (seconds + era - ntpToUnix + fraction / 2 ** 32) * 1000;
}

const vr2gatherSize = 16;

/**
 * Reads the header that frames of VR2Gather's peers have instead of the prefix: little-endian, with
 * the codec's characters in reverse order.
 */
function parseVR2Gather(frame: Frame, body: Uint8Array): void {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  if (view.getInt32(4, true) !== body.length - vr2gatherSize) {
    return;
  }
  frame.codec = String.fromCharCode(...body.subarray(0, 4)).split("").reverse().join("");
  const captured = Number(view.getBigInt64(8, true));
  frame.captured = captured === 0 ? NaN : captured;
  frame.data = body.subarray(vr2gatherSize);
}
