// Cameras with depth in their picture: depth cameras with a driver that combines both streams in
// one video device, virtual cameras, and phone videos with depth beside colour.

import type { Picture } from "./depth";
import { explain, Lacking, lacksDevices } from "./device";

export { explain, Lacking, lacksDevices } from "./device";

/** The time limit for frames, in milliseconds. */
const patience = 1000;

/** Returns the cameras. Their names are empty until the user has permitted one. */
export async function cameras(): Promise<MediaDeviceInfo[]> {
  const devices = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  return devices.filter((d) => d.kind === "videoinput");
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
