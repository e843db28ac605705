import createDecoderModule, { type Decoder as DracoDecoder, type DecoderModule, type PointCloud } from "draco3d/draco_decoder_nodejs.js";
import wasmURL from "draco3d/draco_decoder.wasm?url";
import { parseDracoHead } from "./dracohead";
import { DecodeError, type Decoder, type PointPool, type Points, whiten } from "./points";

/**
 * The maximum heap that an instance of Draco may keep between frames. WebAssembly memory never
 * shrinks, so an instance with a larger heap is discarded. The limit is four times the initial 16
 * MiB: instances remain for frames of up to 1.2 million points, at about 40 bytes each during
 * decoding.
 */
const keptHeap = 64 << 20;

/** Loads Draco's WebAssembly and returns a decoder of "drco". */
export async function loadDraco(): Promise<Draco> {
  const response = await fetch(wasmURL);
  if (!response.ok) {
    throw new DecodeError(`draco: ${wasmURL} cannot be loaded (${response.status})`);
  }
  const draco = new Draco(await WebAssembly.compile(await response.arrayBuffer()));
  await draco.prepare();
  return draco;
}

/**
 * Decodes "drco". A frame that announces more points than its bytes can contain is rejected before
 * Draco reads it.
 */
export class Draco implements Decoder {
  /** The instance for decoding, undefined after one was discarded. */
  private instance: Instance | undefined;

  constructor(private readonly wasm: WebAssembly.Module) {}

  /** The size of the heap in bytes. */
  get heap(): number {
    return this.instance?.heap ?? 0;
  }

  /** Makes an instance of Draco if there is none. */
  async prepare(): Promise<Instance> {
    return (this.instance ??= new Instance(await instantiate(this.wasm)));
  }

  announced(data: Uint8Array): number {
    return parseDracoHead(data);
  }

  async decode(data: Uint8Array, pool: PointPool): Promise<Points> {
    const count = parseDracoHead(data);
    const instance = await this.prepare();
    try {
      return instance.decode(data, count, pool);
    } catch (error) {
      if (error instanceof DecodeError) {
        throw error;
      }
      // Draco was interrupted, so the state of its heap is unknown.
      this.instance = undefined;
      throw new DecodeError(`draco: the decoder ended with "${error instanceof Error ? error.message : String(error)}"`);
    } finally {
      if (instance.heap > keptHeap) {
        this.instance = undefined;
      }
    }
  }
}

async function instantiate(wasm: WebAssembly.Module): Promise<DecoderModule> {
  return new Promise((resolve, reject) => {
    createDecoderModule({
      instantiateWasm: (imports, made) => {
        WebAssembly.instantiate(wasm, imports).then(made, reject);
        return {};
      },
    }).then(resolve, reject);
  });
}

/** Draco with its own heap. */
class Instance {
  private readonly decoder: DracoDecoder;
  /** Memory of the module for copies of attributes, and its size. */
  private scratch = 0;
  private room = 0;

  constructor(private readonly module: DecoderModule) {
    this.decoder = new module.Decoder();
  }

  get heap(): number {
    return this.module.HEAPF32.buffer.byteLength;
  }

  decode(data: Uint8Array, count: number, pool: PointPool): Points {
    const { module, decoder } = this;
    const buffer = new module.DecoderBuffer();
    const cloud = new module.PointCloud();
    buffer.Init(data as unknown as Int8Array, data.length);
    const status = decoder.DecodeBufferToPointCloud(buffer, cloud);
    try {
      if (!status.ok()) {
        throw new DecodeError(`draco: ${status.error_msg()}`);
      }
      return this.points(cloud, count, pool);
    } finally {
      module.destroy(cloud);
      module.destroy(buffer);
    }
  }

  private points(cloud: PointCloud, count: number, pool: PointPool): Points {
    const { module, decoder } = this;
    if (cloud.num_points() !== count) {
      throw new DecodeError(`draco: ${cloud.num_points()} points, the head says ${count}`);
    }
    const position = decoder.GetAttributeId(cloud, module.POSITION);
    if (position < 0) {
      throw new DecodeError("draco: a cloud without positions");
    }
    this.reserve(12 * count);
    const floats = decoder.GetAttribute(cloud, position);
    decoder.GetAttributeDataArrayForAllPoints(cloud, floats, module.DT_FLOAT32, 12 * count, this.scratch);
    const positions = new Float32Array(module.HEAPF32.buffer, this.scratch, 3 * count);
    // Draco also dequantises with limits that are no numbers or infinite.
    if (!positions.every(Number.isFinite)) {
      throw new DecodeError("draco: positions are infinite or no numbers, expected finite positions");
    }
    const points = pool.take(count);
    points.positions.set(positions);
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
    if (this.scratch === 0) {
      this.room = 0;
      throw new Error(`no ${size} bytes of memory`);
    }
  }
}
