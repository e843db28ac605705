// The header of an SFrame ciphertext (RFC 9605, section 4.3): a config byte, the key id and the
// counter.

/** A ciphertext that is not valid. */
export class SFrameError extends Error {}

export interface Header {
  keyID: bigint;
  counter: bigint;
  /** The number of bytes of the header. */
  length: number;
}

/** The flag of a field that follows the config byte, and the largest value in the config byte. */
const extended = 8;
const mostInline = 7n;
export const most64 = 2n ** 64n - 1n;

/** Returns the header of a key id and a counter, both of at most 64 bits. */
export function writeHeader(keyID: bigint, counter: bigint): Uint8Array<ArrayBuffer> {
  const [k, c] = [fieldOf(keyID), fieldOf(counter)];
  return Uint8Array.from([(k.bits << 4) | c.bits, ...k.bytes, ...c.bytes]);
}

function fieldOf(value: bigint): { bits: number; bytes: number[] } {
  if (value < 0n || value > most64) {
    throw new RangeError(`${value} in an SFrame header, expected 0 to 2^64-1`);
  }
  if (value <= mostInline) {
    return { bits: Number(value), bytes: [] };
  }
  const bytes: number[] = [];
  for (let rest = value; rest > 0n; rest >>= 8n) {
    bytes.unshift(Number(rest & 0xffn));
  }
  return { bits: extended | (bytes.length - 1), bytes };
}

/** Reads the header at the start of a ciphertext. Throws an SFrameError with the cause. */
export function readHeader(data: Uint8Array): Header {
  if (data.length === 0) {
    throw new SFrameError("an SFrame ciphertext of 0 bytes has no header");
  }
  const config = data[0]!;
  const key = valueOf(data, config >> 4, 1);
  const counter = valueOf(data, config & 15, key.end);
  return { keyID: key.value, counter: counter.value, length: counter.end };
}

/** Reads a field with four bits in the config byte, whose other bytes begin at an offset. */
function valueOf(data: Uint8Array, bits: number, at: number): { value: bigint; end: number } {
  if ((bits & extended) === 0) {
    return { value: BigInt(bits), end: at };
  }
  const end = at + (bits & 7) + 1;
  if (end > data.length) {
    throw new SFrameError(`an SFrame header of ${end} bytes or more in ${data.length} bytes`);
  }
  let value = 0n;
  for (let i = at; i < end; i++) {
    value = (value << 8n) | BigInt(data[i]!);
  }
  if (data[at] === 0 || value <= mostInline) {
    throw new SFrameError(`the value ${value} in an SFrame header has ${end - at} bytes, more than needed`);
  }
  return { value, end };
}
