import { boundPoints, DecodeError, type Decoder, type PointPool, type Points } from "./points";

const headerBytes = 13;
/** The values that may accompany points: labels, cameras, or both. */
const mostBeside = 3;

/**
 * Decodes the points of "labl": a cloud in another codec with labels and cameras, which pages do
 * not show; see package pkg/codec/labels.
 */
export class Labels implements Decoder {
  constructor(private readonly inner: ReadonlyMap<string, Decoder>) {}

  announced(data: Uint8Array): number {
    return this.parse(data).count;
  }

  async decode(data: Uint8Array, pool: PointPool): Promise<Points> {
    const { decoder, inner, count } = this.parse(data);
    const points = await decoder.decode(inner, pool);
    if (points.count !== count) {
      pool.give(points);
      throw new DecodeError(`labels: ${points.count} points, the head says ${count}`);
    }
    return points;
  }

  /** Reads the head and compares it with the head of the points. */
  private parse(data: Uint8Array): { decoder: Decoder; inner: Uint8Array; count: number } {
    if (data.length < headerBytes) {
      throw new DecodeError(`labels: ${data.length} bytes, expected at least ${headerBytes}`);
    }
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const [size, count, beside] = [view.getUint32(4, true), view.getUint32(8, true), view.getUint8(12)];
    const rest = data.length - headerBytes - size;
    if (size < 1 || rest < 0 || beside > mostBeside || (beside === 0 && rest > 0)) {
      throw new DecodeError(`labels: points in ${size} of ${data.length - headerBytes} bytes, and beside them ${beside}, expected 0 to ${mostBeside}`);
    }
    boundPoints("labels", count, data.length);
    const codec = String.fromCharCode(...data.subarray(0, 4));
    const decoder = this.inner.get(codec);
    if (!decoder) {
      throw new DecodeError(`codec not available: ${JSON.stringify(codec)}, with labels; expected one of ${[...this.inner.keys()].join(", ")}`);
    }
    const inner = data.subarray(headerBytes, headerBytes + size);
    const announced = decoder.announced(inner);
    if (announced !== count) {
      throw new DecodeError(`labels: the points' frame announces ${announced} points, the head says ${count}`);
    }
    return { decoder, inner, count };
  }
}
