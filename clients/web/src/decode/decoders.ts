import { cwi0 } from "./cwi0";
import { loadDraco } from "./draco";
import { DecodeError, type Decoder } from "./points";
import { raw } from "./raw";

/** Decoders by the four characters that name their codec in frames. */
export async function loadDecoders(): Promise<ReadonlyMap<string, Decoder>> {
  return new Map([
    ["drco", await loadDraco()],
    ["raw1", raw],
    ["cwi0", cwi0],
  ]);
}

/** Finds the decoder of a codec, or throws what a person is told. */
export function decoderOf(decoders: ReadonlyMap<string, Decoder>, codec: string): Decoder {
  const decoder = decoders.get(codec);
  if (!decoder) {
    throw new DecodeError(`codec not available: ${JSON.stringify(codec)}, expected one of ${[...decoders.keys()].join(", ")}`);
  }
  return decoder;
}
