declare module "draco3d/draco_encoder_nodejs.js" {
  export interface Encoder {
    SetEncodingMethod(method: number): void;
    SetSpeedOptions(encode: number, decode: number): void;
    SetAttributeExplicitQuantization(attribute: number, bits: number, components: number, origin: readonly number[], range: number): void;
    EncodePointCloudToDracoBuffer(cloud: object, deduplicate: boolean, into: object): number;
  }
  interface Builder {
    AddFloatAttribute(cloud: object, attribute: number, count: number, components: number, values: Float32Array): number;
    AddUInt8Attribute(cloud: object, attribute: number, count: number, components: number, values: Uint8Array): number;
  }
  export interface EncoderModule {
    readonly POSITION: number;
    readonly COLOR: number;
    readonly PointCloud: new () => object;
    readonly PointCloudBuilder: new () => Builder;
    readonly Encoder: new () => Encoder;
    readonly DracoInt8Array: new () => { GetValue(i: number): number };
    destroy(made: object): void;
  }
  export default function createEncoderModule(properties: { wasmBinary: ArrayBuffer }): Promise<EncoderModule>;
}
