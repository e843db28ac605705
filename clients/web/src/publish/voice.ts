// Sound as a separate publication, of the microphone or of a shared screen: an ordinary Opus track.

import type { Conference } from "../viewer/conference";
import type { Outgoing } from "../viewer/own";
import type { Publication, ServerMessage } from "../signal/messages";
import { scheme } from "../sframe/metadata";
import { Announcement } from "./announcement";
import { explain, Lacking, lacksDevices } from "./device";

/** The name of a publication of sound, its rate in bit/s, and the words about it. */
interface SoundKind {
  name: string;
  bps: number;
  /** In "The server rejected …". */
  what: string;
  ended: string;
}

const microphone: SoundKind = {
  name: "voice", bps: 64_000, what: "the microphone", ended: "The microphone was disconnected: others can no longer hear you. Connect it, then show yourself again.",
};

/** The sound of a shared screen, which may be music. */
export const screenSound: SoundKind = { name: "screen-sound", bps: 128_000, what: "the sound of the screen", ended: "The sound of the screen has ended." };

function description({ name, bps }: SoundKind, encrypted: boolean): Publication {
  return {
    name,
    kind: "audio",
    mode: "alternatives",
    codec: { mime_type: "audio/opus", clock_rate: 48_000, channels: 2 },
    ...(encrypted ? { encryption: scheme } : {}),
    tiles: [{ box: { min: [0, 0, 0], max: [0, 0, 0] } }],
    qualities: [{ bitrate_bps: bps }],
  };
}

/** Opens the microphone. It throws errors with a message for the user. */
export async function openMicrophone(): Promise<MediaStreamTrack> {
  const missing = lacksDevices();
  if (missing) {
    throw new Lacking(missing);
  }
  try {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true } });
    return stream.getAudioTracks()[0]!;
  } catch (error) {
    throw explain(error, "microphone");
  }
}

export class Voice implements Outgoing {
  private readonly announcement: Announcement;

  /**
   * Publishes sound.
   * @param lost is called with the reason when the sound is no longer sent; the caller must then
   * end the voice
   */
  constructor(
    private readonly conference: Conference,
    private readonly track: MediaStreamTrack,
    private readonly lost: (why: string) => void,
    private readonly kind = microphone,
  ) {
    this.announcement = new Announcement(kind.name, (message) => conference.session.send(message), () => description(kind, conference.encryption !== undefined));
    track.onended = () => lost(kind.ended);
    conference.feed(kind.name, { track: () => track });
    conference.publish(this);
  }

  entered(_renewed: boolean, resumed: boolean): void {
    this.announcement.entered(resumed);
  }

  handle(message: ServerMessage): boolean {
    const answer = this.announcement.answer(message);
    if (answer === "accepted") {
      if (!this.on) {
        this.conference.mute(this.kind.name, true);
      }
    } else if (answer) {
      this.lost(`The server rejected ${this.kind.what}: ${answer.message}`);
    }
    return answer !== undefined;
  }

  get on(): boolean {
    return this.track.enabled;
  }

  set on(on: boolean) {
    this.track.enabled = on;
    if (this.announcement.announced) {
      this.conference.mute(this.kind.name, !on);
    }
  }

  end(): void {
    this.track.onended = null;
    this.track.stop();
    this.conference.unpublish(this);
    if (this.announcement.known) {
      this.conference.retract(this.kind.name);
    }
    this.conference.feed(this.kind.name, undefined);
  }
}
