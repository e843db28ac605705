// The codec for publishing from pages: Draco's kd-tree, on one grid for all tiles and qualities
// (docs/codec.md, "One grid").

import createEncoderModule, { type Encoder, type EncoderModule } from "draco3d/draco_encoder_nodejs.js";
import type { Points } from "../decode/points";
import type { Box } from "../signal/messages";

/** Draco's number for the kd-tree (POINT_CLOUD_KD_TREE_ENCODING). */
const kdTree = 1;
/**
 * Draco's speed, 0 (smallest) to 10 (fastest): time is critical in a page, and costs 7 % more
 * bytes.
 */
const speed = 10;

/** Loads Draco's encoder from its WebAssembly. */
export async function loadEncoder(wasm: ArrayBuffer): Promise<DracoEncoder> {
  return new DracoEncoder(await createEncoderModule({ wasmBinary: wasm }));
}

export class DracoEncoder {
  constructor(private readonly module: EncoderModule) {}

  /**
   * Encodes the first points of a tile, which must be inside the box. A tile without points is a
   * frame without data.
   */
  encode(points: Points, count: number, bits: number, box: Box): Uint8Array<ArrayBuffer> {
    if (count === 0) {
      return new Uint8Array(0);
    }
    const { module } = this;
    const cloud = new module.PointCloud();
    const builder = new module.PointCloudBuilder();
    const encoder = new module.Encoder();
    const out = new module.DracoInt8Array();
    try {
      builder.AddFloatAttribute(cloud, module.POSITION, count, 3, points.positions.subarray(0, 3 * count));
      builder.AddUInt8Attribute(cloud, module.COLOR, count, 3, points.colors.subarray(0, 3 * count));
      this.configure(encoder, bits, box);
      const length = encoder.EncodePointCloudToDracoBuffer(cloud, false, out);
      if (length === 0) {
        throw new Error(`Draco does not encode ${count} points at ${bits} bits`);
      }
      return bytesOf(out, length);
    } finally {
      for (const made of [out, encoder, builder, cloud]) {
        module.destroy(made);
      }
    }
  }

  private configure(encoder: Encoder, bits: number, { min, max }: Box): void {
    const range = Math.max(...max.map((v, axis) => v - min[axis]!));
    encoder.SetEncodingMethod(kdTree);
    encoder.SetSpeedOptions(speed, speed);
    encoder.SetAttributeExplicitQuantization(this.module.POSITION, bits, 3, min, range);
  }
}

function bytesOf(from: { GetValue(i: number): number }, length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) {
    bytes[i] = from.GetValue(i);
  }
  return bytes;
}
