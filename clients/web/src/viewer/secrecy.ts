// The publications that this page does not receive, because of their encryption or its own, and the
// words for the state of encryption.

import { transforms } from "../media/connection";
import { isPicture } from "../media/picture";
import type { Encryption } from "../sframe/encryption";
import { scheme } from "../sframe/metadata";
import type { Reason } from "../sframe/opener";
import type { Choice, Publication } from "../signal/messages";

/** The reason why a publication is not received: that of its frames, or that its codec has no encryption. */
export type Refusal = Reason | "picture";

/** Returns the reason why a publication is not received; undefined if it is. */
export function refusalOf(publication: Publication, hasKey: boolean): Refusal | undefined {
  const { encryption } = publication;
  if (encryption !== undefined && encryption !== scheme) {
    return "unknown_scheme";
  }
  if (hasKey && encryption === undefined) {
    return isPicture(publication) ? "picture" : "not_encrypted";
  }
  if (hasKey) {
    return undefined;
  }
  return encryption === undefined ? undefined : "no_key";
}

/** The advice for browsers that do not permit scripts to replace packets of sound. */
export const soundAdvice = "Recent versions of Chrome, Edge, Firefox and Safari can.";

/** Returns a sentence about a participant whose frames are rejected, with advice. */
export function sentenceOf(who: string, reason: Refusal): string {
  switch (reason) {
    case "picture":
      return `Webcam or screen of ${who}: not shown, because webcams and screens cannot be encrypted. To see them, enter the room without a key.`;
    case "no_key":
      return `${who} is encrypted. Press the lock at the top, and enter the key of the room.`;
    case "unknown_epoch":
      return `${who} uses a newer or older key. Press the lock at the top, and enter the key that ${who} uses.`;
    case "wrong_key":
      return `${who} cannot be decrypted: this page has another key. Press the lock at the top, and enter the key that ${who} uses.`;
    case "altered":
      return `Frames of ${who} were altered on the way, and are rejected. If this continues, do not trust this server, and leave the room.`;
    case "replay":
      return `Frames of ${who} arrived a second time, and are rejected. If this continues, do not trust this server, and leave the room.`;
    case "malformed":
      return `Frames of ${who} are not encrypted frames, and are rejected. If this continues, do not trust this server, and leave the room.`;
    case "not_encrypted":
      return `${who} is not encrypted, and is not shown while this page has a key. ${who} must enter the key of the room, too.`;
    case "unknown_scheme":
      return `${who} is encrypted in a way that this page does not know. Reload the page: the server may have a newer version.`;
  }
}

export class Secrecy {
  /** The reasons why publications are not received, by participant and publication. */
  private readonly refused = new Map<string, Map<string, Refusal>>();
  /** The tracks of lines with sound, and the lines with sound that is not received. */
  private readonly tracks = new Map<string, MediaStreamTrack>();
  private readonly silent = new Set<string>();

  /**
   * @param encryption is undefined if the page has no key
   * @param choose switches publications off
   * @param warn shows a sentence to the user
   */
  constructor(
    private readonly encryption: Encryption | undefined,
    private readonly choose: (choice: Choice) => void,
    private readonly warn: (sentence: string) => void,
  ) {}

  published(participant: string, publication: Publication): void {
    const reason = refusalOf(publication, this.encryption !== undefined);
    if (reason === undefined) {
      this.unpublished(participant, publication.name);
      if (publication.encryption !== undefined && publication.kind === "audio" && !transforms()) {
        this.warn(`This browser cannot decrypt the sound of ${participant}. ${soundAdvice}`);
      }
      return;
    }
    const of = this.refused.get(participant) ?? new Map<string, Refusal>();
    this.refused.set(participant, of.set(publication.name, reason));
    // Sound has no qualities to choose from, and is muted here instead.
    if (publication.kind === "video") {
      this.choose({ participant, publication: publication.name, quality: -1 });
    }
    this.warn(sentenceOf(participant, reason));
  }

  unpublished(participant: string, publication: string): void {
    const of = this.refused.get(participant);
    if (!of?.delete(publication)) {
      return;
    }
    this.choose({ participant, publication, quality: "auto" });
    if (of.size === 0) {
      this.refused.delete(participant);
    }
  }

  /** Reports whether a publication is not received. */
  refuses({ participant, publication }: { participant: string; publication: string }): boolean {
    return this.refused.get(participant)?.has(publication) ?? false;
  }

  /** Adds the track of a line with sound. */
  listen(mid: string, track: MediaStreamTrack): void {
    this.tracks.set(mid, track);
    track.enabled = !this.silent.has(mid);
  }

  /** Mutes a line, or ends that. Without a key, encrypted sound would be noise. */
  mute(mid: string, silent: boolean): void {
    if (silent) {
      this.silent.add(mid);
    } else {
      this.silent.delete(mid);
    }
    const track = this.tracks.get(mid);
    if (track) {
      track.enabled = !silent;
    }
  }

  /** Forgets the lines that have ended, and returns those with sound. */
  forget(ended: (mid: string) => boolean): string[] {
    const sounds = [...this.tracks.keys()].filter(ended);
    sounds.forEach((mid) => this.tracks.delete(mid));
    [...this.silent].filter(ended).forEach((mid) => this.silent.delete(mid));
    return sounds;
  }

  /**
   * Returns the state of every participant whose state is known: "opened", or the reason why not
   * everything is received.
   */
  states(): Map<string, "opened" | Refusal> {
    const states = new Map<string, "opened" | Refusal>(this.encryption?.states);
    for (const [who, of] of this.refused) {
      states.set(who, of.values().next().value!);
    }
    return states;
  }
}
