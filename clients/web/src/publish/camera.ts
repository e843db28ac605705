// Cameras with depth in their picture: depth cameras with a driver that combines both streams in
// one video device, virtual cameras, and phone videos with depth beside colour.

import type { Picture } from "./depth";

/** An error with a message for the user and advice. */
export class Lacking extends Error {}

/** The time limit for frames, in milliseconds. */
const patience = 1000;

/** Returns the reason why this page cannot use cameras and microphones, or undefined. */
export function lacksDevices(): string | undefined {
  if (!isSecureContext) {
    return "This page was loaded over http, but browsers permit cameras and microphones only on https pages and on localhost. Open it over https.";
  }
  return navigator.mediaDevices ? undefined : "This browser does not support cameras and microphones on web pages.";
}

/** Returns the cameras. Their names are empty until the user has permitted one. */
export async function cameras(): Promise<MediaDeviceInfo[]> {
  const devices = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  return devices.filter((d) => d.kind === "videoinput");
}

/** Explains why a camera or a microphone is unavailable. */
export function explain(error: unknown, what: "camera" | "microphone"): Lacking {
  const name = error instanceof DOMException ? error.name : "";
  switch (name) {
    case "NotAllowedError":
      return new Lacking(`The ${what} was not allowed. Allow it with the icon beside the page's address, then try again.`);
    case "NotFoundError":
    case "OverconstrainedError":
      return new Lacking(`There is no ${what}. Connect one, then try again.`);
    case "NotReadableError":
      return new Lacking(`The ${what} does not work. If another program is using it, close that program, then try again.`);
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

  /** Opens the camera with the given id, or any. It throws errors with a message for the user. */
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

  /** The aspect ratio of the whole picture, width over height. */
  get aspect(): number {
    return this.video.videoWidth / (this.video.videoHeight || 1) || 4 / 3;
  }

  /** Sets the handler for the loss of the camera. */
  set ended(listener: () => void) {
    this.stream.getVideoTracks()[0]?.addEventListener("ended", listener);
  }

  /** Waits for the next picture; returns undefined if none arrives. */
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
