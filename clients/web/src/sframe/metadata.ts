// The data that is authenticated with a frame beside its SFrame header (docs/encryption.md).

/** The name of this way of encryption in signalling. */
export const scheme = "sframe";

/** The place of a frame: its publication, and the tile or 0 for sound. */
export interface Origin {
  participant: string;
  publication: string;
  tile: number;
}

/** The length in bytes of the prefix of a frame, which stays readable. */
export const prefixSize = 12;

const version = 1;
const frameKind = 0;
const packetKind = 1;
const numbersSize = 9;

const text = new TextEncoder();

/** Returns the metadata of a frame of payload v1 with that prefix. */
export function frameMetadata({ publication, tile }: Origin, quality: number, number: number, prefix: Uint8Array): Uint8Array<ArrayBuffer> {
  return metadata(frameKind, tile, quality, number, prefix, publication);
}

/** Returns the metadata of a packet of sound. */
export function soundMetadata({ publication }: Origin): Uint8Array<ArrayBuffer> {
  return metadata(packetKind, 0, 0, 0, new Uint8Array(0), publication);
}

function metadata(kind: number, tile: number, quality: number, number: number, prefix: Uint8Array, publication: string): Uint8Array<ArrayBuffer> {
  const name = text.encode(publication);
  const whole = new Uint8Array(numbersSize + prefix.length + name.length);
  const view = new DataView(whole.buffer);
  view.setUint8(0, version);
  view.setUint8(1, kind);
  view.setUint16(2, tile);
  view.setUint8(4, quality);
  view.setUint32(5, number);
  whole.set(prefix, numbersSize);
  whole.set(name, numbersSize + prefix.length);
  return whole;
}
