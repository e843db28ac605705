import { boundPoints, DecodeError, type Decoder, type PointPool, type Points } from "./points";

const headerBytes = 32;
const pointBytes = 16;

/** Decodes "cwi0", VR2Gather's uncompressed points; see docs/payload.md. */
export const cwi0 = {
  announced(data: Uint8Array): number {
    if (data.length < headerBytes || String.fromCharCode(...data.subarray(0, 4)) !== "cpcd") {
      throw new DecodeError(`cwi0: ${data.length} bytes without its header`);
    }
    const body = data.length - headerBytes;
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    if (view.getBigUint64(24, true) !== BigInt(body) || body % pointBytes !== 0) {
      throw new DecodeError(`cwi0: ${body} bytes of points follow, expected ${view.getBigUint64(24, true)}, ${pointBytes} for each`);
    }
    return boundPoints("cwi0", body / pointBytes, data.length);
  },

  /**
   * Omits points with a coordinate that is not a number, so there may be fewer points than
   * announced.
   */
  decode(data: Uint8Array, pool: PointPool): Points {
    const points = pool.take(cwi0.announced(data));
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    let n = 0;
    for (let at = headerBytes; at < data.length; at += pointBytes) {
      const x = view.getFloat32(at, true);
      const y = view.getFloat32(at + 4, true);
      const z = view.getFloat32(at + 8, true);
      if (!Number.isFinite(x + y + z)) {
        continue;
      }
      points.positions.set([x, y, z], 3 * n);
      points.colors.set(data.subarray(at + 12, at + 15), 3 * n);
      n++;
    }
    points.count = n;
    return points;
  },
} satisfies Decoder;
