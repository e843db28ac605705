// A microphone as a separate publication: an ordinary Opus track.

import type { Conference } from "../viewer/conference";
import type { Outgoing } from "../viewer/own";
import type { Publication, ServerMessage } from "../signal/messages";
import { scheme } from "../sframe/metadata";
import { explain, Lacking, lacksDevices } from "./camera";

const name = "voice";

const description: Publication = {
  name,
  kind: "audio",
  mode: "alternatives",
  codec: { mime_type: "audio/opus", clock_rate: 48_000, channels: 2 },
  tiles: [{ box: { min: [0, 0, 0], max: [0, 0, 0] } }],
  qualities: [{ bitrate_bps: 64_000 }],
};

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
  private announced = false;
  /** The publication was announced to the server, and not rejected so far. */
  private publishSent = false;
  private attempt = 0;

  /**
   * Publishes the sound of a microphone.
   * @param lost is called with the reason when the sound is no longer sent; the caller must then
   * end the voice
   */
  constructor(
    private readonly conference: Conference,
    private readonly track: MediaStreamTrack,
    private readonly lost: (why: string) => void,
  ) {
    track.onended = () => lost("The microphone was disconnected: others can no longer hear you. Connect it, then show yourself again.");
    conference.speak(name, track);
    conference.publish(this);
  }

  entered(_renewed: boolean, resumed: boolean): void {
    if (!resumed || !this.announced) {
      this.announced = false;
      this.publishSent = this.conference.session.send({ type: "publish", id: `${name}/${++this.attempt}`, publication: this.conference.encryption ? { ...description, encryption: scheme } : description });
    }
  }

  handle(message: ServerMessage): boolean {
    if ((message.type !== "ok" && message.type !== "error") || message.id !== `${name}/${this.attempt}`) {
      return false;
    }
    if (message.type === "ok" || message.code === "exists") {
      this.announced = true;
      if (!this.on) {
        this.conference.mute(name, true);
      }
    } else {
      this.publishSent = false;
      this.lost(`The server rejected the microphone: ${message.message}`);
    }
    return true;
  }

  get on(): boolean {
    return this.track.enabled;
  }

  set on(on: boolean) {
    this.track.enabled = on;
    if (this.announced) {
      this.conference.mute(name, !on);
    }
  }

  end(): void {
    this.track.onended = null;
    this.track.stop();
    this.conference.unpublish(this);
    if (this.publishSent) {
      this.conference.retract(name);
    }
    this.conference.speak(name, undefined);
  }
}
