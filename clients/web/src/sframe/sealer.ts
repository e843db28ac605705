// Encryption of the frames that this page publishes.

import { Cipher } from "./cipher";
import type { KeyRing } from "./keyring";

const sessionBytes = 6;

export class Sealer {
  /** 48 random bits, so that two sessions of one identity have different keys. */
  private readonly session: bigint;
  /** The number of frames encrypted so far, with all keys. */
  private counter = 0n;
  private epoch: number | undefined;
  private cipher: Promise<Cipher> | undefined;
  private identity = "";

  constructor(private readonly keys: KeyRing) {
    this.session = crypto.getRandomValues(new Uint8Array(sessionBytes)).reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
  }

  /** Sets the identity that the server has given this participant. */
  enter(identity: string): void {
    this.identity = identity;
    this.renew();
  }

  /** Encrypts with the keys of an epoch from now on. */
  use(epoch: number): void {
    this.epoch = epoch;
    this.renew();
  }

  /** Returns the epoch in use; undefined if no frame can be encrypted. */
  get using(): number | undefined {
    return this.epoch;
  }

  /** Derives the key again, since a secret has changed. */
  renew(): void {
    this.cipher = undefined;
  }

  /** Encrypts data behind `room` bytes for the caller's use. Throws an error without a key. */
  async seal(metadata: Uint8Array, plain: Uint8Array<ArrayBuffer>, room = 0): Promise<Uint8Array<ArrayBuffer>> {
    this.cipher ??= this.derive();
    const counter = this.counter++;
    return (await this.cipher).seal(counter, metadata, plain, room);
  }

  private async derive(): Promise<Cipher> {
    const { epoch } = this;
    const base = epoch === undefined ? undefined : this.keys.base(this.identity, epoch);
    if (!base) {
      throw new Error(`There is no key of epoch ${epoch}: nothing is published.`);
    }
    return Cipher.derive(await base, (BigInt(epoch!) << 48n) | this.session, "encrypt");
  }
}
