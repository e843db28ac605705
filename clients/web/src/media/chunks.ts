// Frames in chunks over data channels (docs/payload.md, "Browsers"), for browsers without script
// access to frames before their decoder.

import { type Frame, FrameError, readFrame } from "./frame";

const headerSize = 20;
const chunkSize = 64_000;
/** The maximum length of an assembled frame, the default limit of servers. */
const longest = 16 << 20;
/**
 * The number of frames per channel that are assembled at once. Channels are unordered, so that the
 * chunks of two frames may interleave.
 */
const kept = 3;

interface Assembly {
  timestamp: number;
  length: number;
  /** The chunks received so far, by index. */
  chunks: (Uint8Array | undefined)[];
  missing: number;
}

/**
 * Assembles the frames of one channel. Timestamps of a channel never decrease, so a frame is
 * dropped once a newer one is complete. Memory is bounded by the received bytes, whatever length a
 * frame declares: for three frames at most 3 × 16 MiB.
 */
export class ChunkAssembler {
  private assemblies: Assembly[] = [];
  private newest: number | undefined;

  /**
   * Adds a message, and returns the frame that it completes, if any. Throws a FrameError with the
   * cause.
   */
  take(message: ArrayBuffer): Frame | undefined {
    if (message.byteLength < headerSize) {
      throw new FrameError(`chunk of ${message.byteLength} bytes, expected at least ${headerSize}`);
    }
    const view = new DataView(message);
    const [version, flags, quality, index] = [view.getUint8(0), view.getUint8(1), view.getUint8(4), view.getUint16(6)];
    const [number, length, timestamp] = [view.getUint32(8), view.getUint32(12), view.getUint32(16)];
    const data = new Uint8Array(message, headerSize);
    const count = Math.max(1, Math.ceil(length / chunkSize));
    if (version !== 1 || length > longest || index >= count || data.length !== Math.min(chunkSize, length - index * chunkSize)) {
      throw new FrameError(`chunk ${index} of a frame of ${length} bytes, version ${version}, has ${data.length} bytes`);
    }
    if (this.newest !== undefined && ((timestamp - this.newest) | 0) <= 0) {
      return undefined;
    }
    const assembly = this.assembly(timestamp, length, count);
    if (assembly.chunks[index]) {
      return undefined;
    }
    assembly.chunks[index] = data;
    if (--assembly.missing > 0) {
      return undefined;
    }
    this.newest = timestamp;
    this.assemblies = this.assemblies.filter((a) => ((a.timestamp - timestamp) | 0) > 0);
    return readFrame({ prefixed: (flags & 1) !== 0, quality, number }, whole(assembly));
  }

  private assembly(timestamp: number, length: number, count: number): Assembly {
    const before = this.assemblies.find((a) => a.timestamp === timestamp);
    if (before) {
      if (before.length !== length) {
        throw new FrameError(`chunks of one frame declare ${before.length} and ${length} bytes`);
      }
      return before;
    }
    if (this.assemblies.length === kept) {
      this.assemblies.shift();
    }
    const begun = { timestamp, length, chunks: new Array<Uint8Array | undefined>(count), missing: count };
    this.assemblies.push(begun);
    return begun;
  }
}

/** Joins a frame's chunks. A frame of a single chunk is the chunk. */
function whole({ length, chunks }: Assembly): Uint8Array {
  if (chunks.length === 1) {
    return chunks[0]!;
  }
  const body = new Uint8Array(length);
  chunks.forEach((chunk, index) => body.set(chunk!, index * chunkSize));
  return body;
}
