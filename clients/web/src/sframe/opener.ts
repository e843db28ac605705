// Decryption of frames of all participants, with the detection of repeated ones.

import { Cipher } from "./cipher";
import { type Header, readHeader } from "./header";
import type { KeyRing } from "./keyring";
import type { Origin } from "./metadata";
import { ReplayWindow } from "./replay";

/** The reasons for which frames are rejected (docs/encryption.md). */
export const reasons = ["no_key", "unknown_epoch", "wrong_key", "altered", "replay", "malformed", "not_encrypted", "unknown_scheme"] as const;
export type Reason = (typeof reasons)[number];

export class Rejected extends Error {
  constructor(readonly reason: Reason) {
    super(reason);
  }
}

/** The most sessions of a participant in an epoch, in use and retired. */
const mostSessions = 4;
const mostRetired = 4096;
/** The most pairs of a participant and an epoch; a session has 8 KiB. */
const mostPeers = 1024;

interface Session {
  cipher: Cipher;
  window: ReplayWindow;
}

/** The sessions of a participant in an epoch whose frames were authentic, by key id. */
class Peer {
  private readonly sessions = new Map<bigint, Session>();
  private readonly retired = new Set<bigint>();

  /** Reports whether any frame was authentic. */
  get known(): boolean {
    return this.sessions.size > 0;
  }

  /** Reports whether frames of a session are refused: it was retired, or would be one too many. */
  refuses(keyID: bigint): boolean {
    return this.retired.has(keyID) || (this.retired.size === mostRetired && !this.sessions.has(keyID));
  }

  get(keyID: bigint): Session | undefined {
    return this.sessions.get(keyID);
  }

  /**
   * Returns the session of an authentic frame as the most recently used one. The least recently used
   * one is retired if there are too many.
   */
  use(cipher: Cipher): Session {
    const { keyID } = cipher;
    const session = this.sessions.get(keyID) ?? { cipher, window: new ReplayWindow() };
    this.sessions.delete(keyID);
    this.sessions.set(keyID, session);
    if (this.sessions.size > mostSessions) {
      const [oldest] = this.sessions.keys();
      this.sessions.delete(oldest!);
      this.retired.add(oldest!);
    }
    return session;
  }
}

export class Opener {
  private readonly peers = new Map<string, Peer>();

  constructor(private readonly keys: KeyRing) {}

  /** Returns the decrypted data of a ciphertext. Throws Rejected with the reason. */
  async open({ participant }: Origin, metadata: Uint8Array, sealed: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
    const { keyID, counter } = headerOf(sealed);
    const epoch = Number(keyID >> 48n);
    const base = this.keys.base(participant, epoch);
    if (!base) {
      throw new Rejected(this.keys.has(participant) ? "unknown_epoch" : "no_key");
    }
    const peer = this.peer(`${epoch}/${participant}`);
    const session = peer.get(keyID);
    if (peer.refuses(keyID) || session?.window.fresh(counter) === false) {
      throw new Rejected("replay");
    }
    const cipher = session?.cipher ?? (await Cipher.derive(await base, keyID, "decrypt"));
    let plain: Uint8Array<ArrayBuffer>;
    try {
      plain = await cipher.open(metadata, sealed);
    } catch {
      throw new Rejected(peer.known ? "altered" : "wrong_key");
    }
    // Another copy of the frame may have been decrypted meanwhile.
    if (peer.refuses(keyID) || !peer.use(cipher).window.accept(counter)) {
      throw new Rejected("replay");
    }
    return plain;
  }

  /** Drops the sessions of an epoch, for all participants or for one, since its secret has changed. */
  forget(epoch: number, participant?: string): void {
    for (const key of this.peers.keys()) {
      if (participant === undefined ? key.startsWith(`${epoch}/`) : key === `${epoch}/${participant}`) {
        this.peers.delete(key);
      }
    }
  }

  private peer(key: string): Peer {
    const peer = this.peers.get(key) ?? new Peer();
    this.peers.delete(key);
    this.peers.set(key, peer);
    if (this.peers.size > mostPeers) {
      this.peers.delete(this.peers.keys().next().value!);
    }
    return peer;
  }
}

function headerOf(sealed: Uint8Array): Header {
  try {
    return readHeader(sealed);
  } catch {
    throw new Rejected("malformed");
  }
}
