import createDecoderModule, { type Decoder as DracoDecoder, type DecoderModule, type PointCloud } from "draco3d/draco_decoder_nodejs.js";
import wasmURL from "draco3d/draco_decoder.wasm?url";
import { checkCount, DecodeError, type Decoder, type PointPool, type Points, whiten } from "./points";

/** Loads Draco's WebAssembly, and gives a decoder of "drco" that uses it. */
export async function loadDraco(): Promise<Decoder> {
  const response = await fetch(wasmURL);
  if (!response.ok) {
    throw new DecodeError(`draco: ${wasmURL} is not to be had (${response.status})`);
  }
  const module: DecoderModule = await createDecoderModule({ wasmBinary: await response.arrayBuffer() });
  return new Draco(module);
}

class Draco implements Decoder {
  private readonly decoder: DracoDecoder;
  /** Memory of the module that attributes are copied to, and its size. */
  private scratch = 0;
  private room = 0;

  constructor(private readonly module: DecoderModule) {
    this.decoder = new module.Decoder();
  }

  decode(data: Uint8Array, pool: PointPool): Points {
    const { module, decoder } = this;
    const buffer = new module.DecoderBuffer();
    const cloud = new module.PointCloud();
    try {
      buffer.Init(data as unknown as Int8Array, data.length);
      const status = decoder.DecodeBufferToPointCloud(buffer, cloud);
      if (!status.ok()) {
        throw new DecodeError(`draco: ${status.error_msg()}`);
      }
      return this.points(cloud, pool);
    } finally {
      module.destroy(cloud);
      module.destroy(buffer);
    }
  }

  private points(cloud: PointCloud, pool: PointPool): Points {
    const { module, decoder } = this;
    const count = cloud.num_points();
    checkCount("draco", count);
    const position = decoder.GetAttributeId(cloud, module.POSITION);
    if (position < 0) {
      throw new DecodeError("draco: a cloud without positions");
    }
    const points = pool.take(count);
    const floats = decoder.GetAttribute(cloud, position);
    this.reserve(12 * count);
    decoder.GetAttributeDataArrayForAllPoints(cloud, floats, module.DT_FLOAT32, 12 * count, this.scratch);
    points.positions.set(new Float32Array(module.HEAPF32.buffer, this.scratch, 3 * count));
    const color = decoder.GetAttributeId(cloud, module.COLOR);
    const bytes = color < 0 ? undefined : decoder.GetAttribute(cloud, color);
    if (bytes && bytes.num_components() === 3) {
      decoder.GetAttributeDataArrayForAllPoints(cloud, bytes, module.DT_UINT8, 3 * count, this.scratch);
      points.colors.set(new Uint8Array(module.HEAPF32.buffer, this.scratch, 3 * count));
    } else {
      whiten(points);
    }
    return points;
  }

  private reserve(size: number): void {
    if (size <= this.room) {
      return;
    }
    if (this.scratch !== 0) {
      this.module._free(this.scratch);
    }
    this.scratch = this.module._malloc(size);
    this.room = size;
  }
}
