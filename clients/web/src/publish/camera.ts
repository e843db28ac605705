// Cameras that show depth in their picture: depth cameras whose driver makes a video device of both streams, virtual cameras, and videos of phones that carry depth
// beside colour.

import type { Picture } from "./depth";

/** What a person is told, and what they can do about it. */
export class Lacking extends Error {}

/** Frames that do not come are waited for so long, in milliseconds. */
const patience = 1000;

/** Why this page cannot have cameras and microphones at all; nothing where it can. */
export function lacksDevices(): string | undefined {
  if (!isSecureContext) {
    return "This page came over http, and browsers let only https pages and localhost use cameras and microphones. Open it over https.";
  }
  return navigator.mediaDevices ? undefined : "This browser lets no page use cameras and microphones.";
}

/** The cameras that there are. Their names are empty until a person has allowed one. */
export async function cameras(): Promise<MediaDeviceInfo[]> {
  const devices = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  return devices.filter((d) => d.kind === "videoinput");
}

/** Says why a camera or a microphone is not to be had. */
export function explain(error: unknown, what: "camera" | "microphone"): Lacking {
  const name = error instanceof DOMException ? error.name : "";
  switch (name) {
    case "NotAllowedError":
      return new Lacking(`The ${what} was not allowed. Allow it with the sign beside the page's address, then try again.`);
    case "NotFoundError":
    case "OverconstrainedError":
      return new Lacking(`There is no ${what}. Connect one, then try again.`);
    case "NotReadableError":
      return new Lacking(`The ${what} does not work: perhaps another program is using it. Close that, then try again.`);
    default:
      return new Lacking(`The ${what} cannot be used: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export class DepthCamera {
  private readonly video = document.createElement("video");

  private constructor(private readonly stream: MediaStream) {
    this.video.muted = true;
    this.video.playsInline = true;
    this.video.srcObject = stream;
  }

  /** Opens a camera by its id, or any. It throws what a person is told. */
  static async open(id: string, fps: number): Promise<DepthCamera> {
    const missing = lacksDevices();
    if (missing) {
      throw new Lacking(missing);
    }
    let camera: DepthCamera | undefined;
    try {
      camera = new DepthCamera(await navigator.mediaDevices.getUserMedia({
        video: { width: { ideal: 1280 }, frameRate: { ideal: fps }, ...(id ? { deviceId: { exact: id } } : {}) },
      }));
      await camera.video.play();
      return camera;
    } catch (error) {
      camera?.close();
      throw explain(error, "camera");
    }
  }

  /** Width over height of the whole picture. */
  get aspect(): number {
    return this.video.videoWidth / (this.video.videoHeight || 1) || 4 / 3;
  }

  /** Hears that the camera was taken away. */
  set ended(hear: () => void) {
    this.stream.getVideoTracks()[0]?.addEventListener("ended", hear);
  }

  /** Waits for the next picture; nothing where none comes. */
  picture(): Promise<Picture | undefined> {
    return new Promise((resolve) => {
      const late = setTimeout(() => resolve(undefined), patience);
      this.video.requestVideoFrameCallback(() => {
        clearTimeout(late);
        createImageBitmap(this.video).then((image) => resolve({ kind: "image", image }), () => resolve(undefined));
      });
    });
  }

  close(): void {
    for (const track of this.stream.getTracks()) {
      track.stop();
    }
    this.video.srcObject = null;
  }
}
