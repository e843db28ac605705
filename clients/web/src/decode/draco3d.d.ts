declare module "draco3d/draco_decoder_nodejs.js" {
  import type { DecoderModule, DracoDecoderModuleProps } from "draco3d";
  export type { Decoder, DecoderModule, PointCloud } from "draco3d";
  export default function createDecoderModule(properties: DracoDecoderModuleProps): Promise<DecoderModule>;
}
