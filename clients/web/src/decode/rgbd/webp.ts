// WebP images of colours: the permitted form is a simple lossy file with one key frame.

import { DecodeError } from "../points";

const headerBytes = 20;
/** The size of the start of a key frame of VP8 (RFC 6386 section 9.1). */
const frameBytes = 10;
const startCode = [0x9d, 0x01, 0x2a];

/**
 * Checks, before the browser decodes it, that an image has the permitted form and exactly the given
 * size. Throws a DecodeError.
 */
export function checkWebP(codec: string, image: Uint8Array, width: number, height: number): void {
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength);
  const text = (at: number): string => String.fromCharCode(...image.subarray(at, at + 4));
  const whole = image.length >= headerBytes + frameBytes;
  const chunk = whole ? view.getUint32(16, true) : 0;
  // Chunks have an even length: a byte of padding follows an odd one.
  const container = whole && text(0) === "RIFF" && text(8) === "WEBP" && text(12) === "VP8 " &&
    view.getUint32(4, true) === image.length - 8 && chunk >= frameBytes && headerBytes + chunk + (chunk & 1) === image.length;
  const key = container && (image[headerBytes]! & 1) === 0 && startCode.every((byte, i) => image[headerBytes + 3 + i] === byte);
  if (!key || (view.getUint16(26, true) & 0x3fff) !== width || (view.getUint16(28, true) & 0x3fff) !== height) {
    throw new DecodeError(`${codec}: ${image.length} bytes of colours are no WebP file with one lossy image of ${width}×${height} pixels`);
  }
}
