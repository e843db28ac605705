import { boundPoints, DecodeError, type Decoder, type PointPool, type Points } from "./points";

const headerBytes = 8;
const sizeBytes = 8;
const mostParts = 64;

/** Decodes parts in parallel elsewhere. */
export interface Helpers {
  /** The number of helpers. */
  readonly count: number;
  decode(helper: number, codec: string, data: Uint8Array): Promise<Points>;
  /** Returns points that a helper made to that helper. */
  give(helper: number, points: Points): void;
}

/**
 * Decodes "part": a cloud in parts of another codec, which are decoded in parallel if there are
 * helpers; see package pkg/codec/parts.
 */
export class Parts implements Decoder {
  constructor(
    private readonly inner: ReadonlyMap<string, Decoder>,
    private readonly helpers: Helpers | undefined,
  ) {}

  announced(data: Uint8Array): number {
    return parse(data).total;
  }

  async decode(data: Uint8Array, pool: PointPool): Promise<Points> {
    const { codec, sizes, total } = parse(data);
    const decoder = this.inner.get(codec);
    if (!decoder) {
      throw new DecodeError(`codec not available: ${JSON.stringify(codec)}, in parts; expected one of ${[...this.inner.keys()].join(", ")}`);
    }
    checkParts(decoder, data, sizes);
    const whole = pool.take(total);
    let from = 0;
    let at = headerBytes + sizes.length * sizeBytes;
    // Decoders keep working memory, so the local parts are decoded one at a time.
    let own: Promise<unknown> = Promise.resolve();
    // After a failure of one part, the others are still awaited, so that no decoder is busy at the
    // next frame.
    const outcomes = await Promise.allSettled(sizes.map(async ({ points, bytes }, i) => {
      const offset = from;
      const part = data.subarray(at, at + bytes);
      from += points;
      at += bytes;
      const helper = i % ((this.helpers?.count ?? 0) + 1);
      let work: Promise<Points>;
      if (helper > 0) {
        work = this.helpers!.decode(helper - 1, codec, part);
      } else {
        work = own.then(() => decoder.decode(part, pool));
        own = work;
      }
      const decoded = await work;
      if (decoded.count !== points) {
        throw new DecodeError(`parts: part ${i} has ${decoded.count} points, expected ${points}`);
      }
      whole.positions.set(decoded.positions.subarray(0, 3 * points), 3 * offset);
      whole.colors.set(decoded.colors.subarray(0, 3 * points), 3 * offset);
      if (helper > 0) {
        this.helpers!.give(helper - 1, decoded);
      } else {
        pool.give(decoded);
      }
    }));
    const failed = outcomes.find((o) => o.status === "rejected");
    if (failed) {
      pool.give(whole);
      throw failed.reason;
    }
    return whole;
  }
}

/**
 * Checks that the heads of the parts announce no more points than the frame's head. Otherwise 64
 * parts of a few bytes could each announce 65,536 points, and all would be decoded before the
 * mismatch was detected.
 */
function checkParts(decoder: Decoder, data: Uint8Array, sizes: { points: number; bytes: number }[]): void {
  let at = headerBytes + sizes.length * sizeBytes;
  sizes.forEach(({ points, bytes }, i) => {
    const announced = decoder.announced(data.subarray(at, at + bytes));
    if (announced > points) {
      throw new DecodeError(`parts: part ${i} announces ${announced} points, expected ${points}`);
    }
    at += bytes;
  });
}

/** Reads the head and compares the frame's length with it. */
function parse(data: Uint8Array): { codec: string; sizes: { points: number; bytes: number }[]; total: number } {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const count = data.length < headerBytes ? 0 : view.getUint32(4, true);
  if (count < 1 || count > mostParts || data.length < headerBytes + count * sizeBytes) {
    throw new DecodeError(`parts: ${count} parts in ${data.length} bytes, expected 1 to ${mostParts}`);
  }
  const sizes = Array.from({ length: count }, (_, i) => ({
    points: view.getUint32(headerBytes + i * sizeBytes, true), bytes: view.getUint32(headerBytes + i * sizeBytes + 4, true),
  }));
  const total = sizes.reduce((sum, s) => sum + s.points, 0);
  const length = sizes.reduce((sum, s) => sum + s.bytes, headerBytes + count * sizeBytes);
  if (length !== data.length || sizes.some((s) => s.points === 0 || s.bytes === 0)) {
    throw new DecodeError(`parts: ${data.length} bytes, the head says ${length}`);
  }
  boundPoints("parts", total, data.length);
  return { codec: String.fromCharCode(...data.subarray(0, 4)), sizes, total };
}
