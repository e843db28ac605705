// Vectors of RFC 9605, appendix C.1 (headers) and C.3 (AES_256_GCM_SHA512_128).

import { describe, expect, it } from "vitest";
import { Cipher, importBase } from "../../src/sframe/cipher";
import { most64, readHeader, SFrameError, writeHeader } from "../../src/sframe/header";

const bytes = (hex: string): Uint8Array<ArrayBuffer> => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const hex = (data: Uint8Array): string => [...data].map((b) => b.toString(16).padStart(2, "0")).join("");

describe("the header", () => {
  const vectors: [bigint, bigint, string][] = [
    [0n, 0n, "00"], [0n, 1n, "01"], [0n, 255n, "08ff"], [0n, 256n, "090100"], [0n, 65536n, "0a010000"], [0n, most64, "0fffffffffffffffff"],
    [1n, 0n, "10"], [1n, 72057594037927936n, "1f0100000000000000"], [255n, 0n, "80ff"], [255n, 255n, "88ffff"], [256n, 1n, "910100"],
    [65535n, 281474976710655n, "9dffffffffffffffff"], [4294967296n, 16777215n, "ca0100000000ffffff"], [16777216n, 4294967296n, "bc010000000100000000"],
    [most64, most64, "ffffffffffffffffffffffffffffffffff"],
  ];

  it("is that of the RFC", () => {
    for (const [keyID, counter, want] of vectors) {
      expect(hex(writeHeader(keyID, counter))).toBe(want);
      expect(readHeader(bytes(`${want}aabb`))).toEqual({ keyID, counter, length: want.length / 2 });
    }
  });

  it("is rejected if it is incomplete, or longer than its values need", () => {
    for (const wrong of ["", "08", "0901", "f00000", "88ff", "0807", "0800", "090001", "8000"]) {
      expect(() => readHeader(bytes(wrong)), wrong).toThrow(SFrameError);
    }
  });

  it("is rejected or read, whatever the bytes are", () => {
    let state = 1;
    const random = (below: number): number => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) % below;
    for (let i = 0; i < 20_000; i++) {
      const data = Uint8Array.from({ length: random(20) }, () => random(256));
      try {
        const { keyID, counter, length } = readHeader(data);
        expect(writeHeader(keyID, counter)).toEqual(data.slice(0, length));
      } catch (error) {
        expect(error).toBeInstanceOf(SFrameError);
      }
    }
  });

  it("has no room for values of more than 64 bits", () => {
    expect(() => writeHeader(most64 + 1n, 0n)).toThrow(RangeError);
    expect(() => writeHeader(0n, -1n)).toThrow(RangeError);
  });
});

describe("the cipher", () => {
  const base = bytes("000102030405060708090a0b0c0d0e0f");
  const metadata = bytes("4945544620534672616d65205747");
  const plain = bytes("64726166742d696574662d736672616d652d656e63");
  const sealed = "990123456794f509d36e9beacb0e261d99c7d1e972f1fed787d4049f17ca21353c1cc24d56ceabced279";
  const [keyID, counter] = [0x123n, 0x4567n];

  it("encrypts and decrypts as in the RFC", async () => {
    const key = await importBase(base);
    const sealing = await Cipher.derive(key, keyID, "encrypt");
    expect(hex(await sealing.seal(counter, metadata, plain))).toBe(sealed);
    expect(hex(await sealing.seal(counter, metadata, plain, 2))).toBe(`0000${sealed}`);
    const opening = await Cipher.derive(key, keyID, "decrypt");
    expect(hex(await opening.open(metadata, bytes(sealed)))).toBe(hex(plain));
  });

  it("rejects every altered bit, other metadata, other keys and cut data", async () => {
    const key = await importBase(base);
    const opening = await Cipher.derive(key, keyID, "decrypt");
    for (let bit = 0; bit < 4 * sealed.length; bit++) {
      const altered = bytes(sealed);
      altered[bit >> 3]! ^= 1 << (bit & 7);
      await expect(opening.open(metadata, altered), `bit ${bit}`).rejects.toThrow(SFrameError);
    }
    await expect(opening.open(metadata.subarray(1), bytes(sealed))).rejects.toThrow(SFrameError);
    await expect(opening.open(metadata, bytes(sealed.slice(0, 40)))).rejects.toThrow(SFrameError);
    const other = await Cipher.derive(await importBase(base.slice(1)), keyID, "decrypt");
    await expect(other.open(metadata, bytes(sealed))).rejects.toThrow("another key");
  });

  it("uses keys that cannot be exported", async () => {
    const key = await importBase(base);
    expect(key.extractable).toBe(false);
    await expect(crypto.subtle.exportKey("raw", key)).rejects.toThrow();
  });
});
