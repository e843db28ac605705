// Secrets of epochs: given by the application, or derived from a passphrase; and the base keys of
// participants, derived from secrets (docs/encryption.md).

import { importBase } from "./cipher";

/** The key of a room as a person enters it. */
export type RoomKey = { kind: "passphrase"; passphrase: string } | { kind: "raw"; epoch: number; secret: Uint8Array<ArrayBuffer> };

/** The epoch of keys from a passphrase. */
export const passphraseEpoch = 0;
export const mostEpochs = 65_536;
/** The least length of a secret in bytes: 128 bits. */
const leastSecret = 16;
const baseBits = 256;

/** OWASP's number of iterations of PBKDF2-HMAC-SHA-256 (2023). */
const iterations = 600_000;

const text = new TextEncoder();

/**
 * Reads the text of a key: EPOCH:HEX, with 32 hexadecimal digits or more, is a secret of all
 * participants; anything else is a passphrase. Throws an error with a message for the user.
 */
export function parseKey(entered: string): RoomKey {
  const raw = /^(\d+):([0-9a-f]*)$/i.exec(entered.trim());
  if (!raw) {
    if (entered === "") {
      throw new Error("The key is empty. Enter the passphrase of the room, or EPOCH:HEX.");
    }
    return { kind: "passphrase", passphrase: entered };
  }
  const [epoch, digits] = [Number(raw[1]), raw[2]!];
  if (epoch >= mostEpochs || digits.length < 2 * leastSecret || digits.length % 2 === 1) {
    throw new Error(`The key has the epoch ${epoch} and ${digits.length} hexadecimal digits. Expected an epoch of 0 to ${mostEpochs - 1}, and an even number of digits, ${2 * leastSecret} or more.`);
  }
  return { kind: "raw", epoch, secret: Uint8Array.from(digits.match(/../g)!, (pair) => parseInt(pair, 16)) };
}

/** Imports a secret of an epoch. The bytes are erased. */
export async function importSecret(secret: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  if (secret.length < leastSecret) {
    throw new Error(`a secret of ${secret.length} bytes, expected ${leastSecret} or more`);
  }
  const key = await importBase(secret);
  secret.fill(0);
  return key;
}

/** Derives the secret of a passphrase in a room. It takes some tenths of a second. */
export async function passphraseSecret(passphrase: string, room: string): Promise<CryptoKey> {
  const key = await crypto.subtle.importKey("raw", text.encode(passphrase), "PBKDF2", false, ["deriveBits"]);
  const salt = text.encode(`volsfu sframe 1 passphrase\0${room}`);
  return importSecret(new Uint8Array(await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt, iterations }, key, baseBits)));
}

/** Derives the base key of a participant in an epoch. */
export async function baseKey(secret: CryptoKey, epoch: number, identity: string): Promise<CryptoKey> {
  const info = text.encode(`volsfu sframe 1 base key\0\0\0${identity}`);
  new DataView(info.buffer).setUint16("volsfu sframe 1 base key\0".length, epoch);
  const bits = new Uint8Array(await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-512", salt: new Uint8Array(0), info }, secret, baseBits));
  const key = await importBase(bits);
  bits.fill(0);
  return key;
}
