import { cwi0 } from "./cwi0";
import { CWI1 } from "./cwi1";
import { loadDraco } from "./draco";
import { DracoJPEG } from "./dracojpeg";
import { Labels } from "./labels";
import { type Helpers, Parts } from "./parts";
import { DecodeError, type Decoder } from "./points";
import { raw } from "./raw";
import { RGBD } from "./rgbd/rgbd";
import { Zstd } from "./zstd";

/** Loads the decoders for a whole cloud, by the four characters of the codec in frames. */
export async function loadInnerDecoders(): Promise<ReadonlyMap<string, Decoder>> {
  const draco = await loadDraco();
  const plain = new Map<string, Decoder>([
    ["drco", draco],
    ["drcj", new DracoJPEG(draco)],
    ["zstd", new Zstd()],
    ["raw1", raw],
    ["cwi0", cwi0],
    ["cwi1", new CWI1()],
  ]);
  return new Map<string, Decoder>([...plain, ["labl", new Labels(plain)]]);
}

/** Loads all decoders. Parts of a frame are decoded in parallel if there are helpers. */
export async function loadDecoders(helpers: Helpers): Promise<ReadonlyMap<string, Decoder>> {
  const inner = await loadInnerDecoders();
  return new Map<string, Decoder>([...inner, ["rgbd", new RGBD()], ["part", new Parts(inner, helpers)]]);
}

/** Known codecs that pages do not decode. */
const known: Record<string, string> = {
  drcm: "triangle meshes of Draco",
};

/** Returns the decoder of a codec, or throws an error with a message for the user. */
export function decoderOf(decoders: ReadonlyMap<string, Decoder>, codec: string): Decoder {
  const decoder = decoders.get(codec);
  if (!decoder) {
    const what = known[codec] ? ` (${known[codec]})` : "";
    throw new DecodeError(`codec not available: ${JSON.stringify(codec)}${what}, expected one of ${[...decoders.keys()].join(", ")}`);
  }
  return decoder;
}
