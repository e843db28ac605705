declare module "draco3d/draco_decoder_nodejs.js" {
  import type { DecoderModule } from "draco3d";
  export type { Decoder, DecoderModule, PointCloud } from "draco3d";
  /**
   * The argument of the loader: a function that makes an instance of the WebAssembly and passes it
   * on.
   */
  export interface DecoderModuleProps {
    instantiateWasm(imports: WebAssembly.Imports, made: (instance: WebAssembly.Instance) => void): object;
  }
  export default function createDecoderModule(properties: DecoderModuleProps): Promise<DecoderModule>;
}
