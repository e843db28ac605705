// The secrets of a room by epoch, and the base keys of its participants.

import { baseKey } from "./secret";

/** The number of base keys that are kept, the most recently used ones; others are derived again. */
const mostBases = 1024;

export class KeyRing {
  /** Secrets of all participants by epoch. */
  private readonly common = new Map<number, CryptoKey>();
  /** Secrets of single participants, by participant and epoch; they take precedence. */
  private readonly own = new Map<string, Map<number, CryptoKey>>();
  private readonly bases = new Map<string, Promise<CryptoKey>>();

  /** Sets the secret of an epoch, for all participants or for one. */
  set(epoch: number, secret: CryptoKey, participant?: string): void {
    this.forgetBases(epoch, participant);
    if (participant === undefined) {
      this.common.set(epoch, secret);
      return;
    }
    const secrets = this.own.get(participant) ?? new Map<number, CryptoKey>();
    this.own.set(participant, secrets.set(epoch, secret));
  }

  /** Removes all secrets of an epoch. */
  forget(epoch: number): void {
    this.forgetBases(epoch);
    this.common.delete(epoch);
    for (const [participant, secrets] of this.own) {
      secrets.delete(epoch);
      if (secrets.size === 0) {
        this.own.delete(participant);
      }
    }
  }

  private forgetBases(epoch: number, participant?: string): void {
    for (const key of this.bases.keys()) {
      if (participant === undefined ? key.startsWith(`${epoch}/`) : key === `${epoch}/${participant}`) {
        this.bases.delete(key);
      }
    }
  }

  /** Reports whether there is a secret of any epoch for a participant. */
  has(participant: string): boolean {
    return this.common.size > 0 || this.own.has(participant);
  }

  /** Returns the base key of a participant in an epoch; undefined without a secret. */
  base(participant: string, epoch: number): Promise<CryptoKey> | undefined {
    const key = `${epoch}/${participant}`;
    const before = this.bases.get(key);
    if (before) {
      this.bases.delete(key);
      this.bases.set(key, before);
      return before;
    }
    const secret = this.own.get(participant)?.get(epoch) ?? this.common.get(epoch);
    if (!secret) {
      return undefined;
    }
    const base = baseKey(secret, epoch, participant);
    this.bases.set(key, base);
    if (this.bases.size > mostBases) {
      this.bases.delete(this.bases.keys().next().value!);
    }
    return base;
  }
}
