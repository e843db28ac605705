// Encryption of frames with SFrame (RFC 9605) and the cipher suite AES_256_GCM_SHA512_128.

import { readHeader, SFrameError, writeHeader } from "./header";

/** The number of the cipher suite (RFC 9605, section 8.1). */
const suite = 5;
const keyBits = 256;
const saltSize = 12;
export const tagSize = 16;

const text = new TextEncoder();

/**
 * Imports a base key for the derivation of keys. The result cannot be exported, and can be posted to
 * workers.
 */
export function importBase(base: BufferSource): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", base, "HKDF", false, ["deriveKey", "deriveBits"]);
}

/** The key and the salt of one key id. */
export class Cipher {
  private constructor(
    readonly keyID: bigint,
    private readonly key: CryptoKey,
    private readonly salt: Uint8Array,
  ) {}

  /** Derives key and salt (RFC 9605, section 4.4.2). A key encrypts or decrypts, never both. */
  static async derive(base: CryptoKey, keyID: bigint, usage: "encrypt" | "decrypt"): Promise<Cipher> {
    const derivation = (label: string): HkdfParams => ({ name: "HKDF", hash: "SHA-512", salt: new Uint8Array(0), info: labelOf(label, keyID) });
    const [key, salt] = await Promise.all([
      crypto.subtle.deriveKey(derivation("SFrame 1.0 Secret key "), base, { name: "AES-GCM", length: keyBits }, false, [usage]),
      crypto.subtle.deriveBits(derivation("SFrame 1.0 Secret salt "), base, 8 * saltSize),
    ]);
    return new Cipher(keyID, key, new Uint8Array(salt));
  }

  /**
   * Encrypts data, and authenticates the metadata with it. The counter must be used only once with
   * this key. The result follows `room` bytes for the caller's use.
   */
  async seal(counter: bigint, metadata: Uint8Array, plain: Uint8Array<ArrayBuffer>, room = 0): Promise<Uint8Array<ArrayBuffer>> {
    const header = writeHeader(this.keyID, counter);
    const sealed = await crypto.subtle.encrypt(this.parameters(counter, header, metadata), this.key, plain);
    const whole = new Uint8Array(room + header.length + sealed.byteLength);
    whole.set(header, room);
    whole.set(new Uint8Array(sealed), room + header.length);
    return whole;
  }

  /**
   * Decrypts data whose header names this key id. Throws an SFrameError if the data or the metadata
   * were altered, or were encrypted with another key.
   */
  async open(metadata: Uint8Array, sealed: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
    const { keyID, counter, length } = readHeader(sealed);
    if (keyID !== this.keyID || sealed.length < length + tagSize) {
      throw new SFrameError(`an SFrame ciphertext of ${sealed.length} bytes with the key id ${keyID}, expected ${length + tagSize} bytes or more and ${this.keyID}`);
    }
    try {
      const parameters = this.parameters(counter, sealed.subarray(0, length), metadata);
      return new Uint8Array(await crypto.subtle.decrypt(parameters, this.key, sealed.subarray(length)));
    } catch {
      throw new SFrameError("the frame was altered, or encrypted with another key");
    }
  }

  private parameters(counter: bigint, header: Uint8Array, metadata: Uint8Array): AesGcmParams {
    const additionalData = new Uint8Array(header.length + metadata.length);
    additionalData.set(header);
    additionalData.set(metadata, header.length);
    return { name: "AES-GCM", iv: this.nonce(counter), additionalData, tagLength: 8 * tagSize };
  }

  /** Returns the salt, xored with the counter as a number of twelve bytes. */
  private nonce(counter: bigint): Uint8Array<ArrayBuffer> {
    const nonce = Uint8Array.from(this.salt);
    const view = new DataView(nonce.buffer);
    view.setBigUint64(saltSize - 8, view.getBigUint64(saltSize - 8) ^ counter);
    return nonce;
  }
}

function labelOf(label: string, keyID: bigint): Uint8Array<ArrayBuffer> {
  const start = text.encode(label);
  const whole = new Uint8Array(start.length + 10);
  whole.set(start);
  const view = new DataView(whole.buffer, start.length);
  view.setBigUint64(0, keyID);
  view.setUint16(8, suite);
  return whole;
}
