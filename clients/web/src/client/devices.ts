// The devices of a browser's page: cameras, microphones, screens and loudspeakers. Unlike the main
// entry point, this one needs a document.

import { cameras as listCameras, DepthCamera } from "../publish/camera";
import { openVideo } from "../publish/video/capture";
import type { DepthSource } from "./publishing";
import type { Room, SoundLine } from "./room";

export { Lacking as DeviceError } from "../publish/camera";
export { openMicrophone } from "../publish/voice";

/** An opened depth camera. */
export interface OpenedCamera extends DepthSource {
  /** Sets the function that is called if the camera is disconnected. */
  ended: () => void;
  close(): void;
}

/** Returns the cameras. Their names are empty until the user has permitted one. */
export function listDepthCameras(): Promise<MediaDeviceInfo[]> {
  return listCameras();
}

/**
 * Opens a camera whose picture has depth, alone or beside colour. It rejects with a DeviceError with
 * a message for the user.
 */
export function openDepthCamera({ deviceId = "", fps = 30 }: { deviceId?: string; fps?: number } = {}): Promise<OpenedCamera> {
  return DepthCamera.open(deviceId, fps);
}

const never = new AbortController().signal;

/** Opens a webcam with about the given number of lines. It rejects with a DeviceError. */
export async function openWebcam({ deviceId = "", lines = 720, signal = never }: { deviceId?: string; lines?: number; signal?: AbortSignal } = {}): Promise<MediaStreamTrack> {
  return (await openVideo("webcam", { camera: deviceId, lines }, signal)).track;
}

/**
 * Asks the user for a screen, right after a click, and returns its tracks: the picture, and the
 * sound if the browser gives it. It rejects with a DeviceError.
 */
export async function openScreen({ signal = never }: { signal?: AbortSignal } = {}): Promise<{ picture: MediaStreamTrack; sound?: MediaStreamTrack }> {
  const { track, sound } = await openVideo("screen", { camera: "", lines: 0 }, signal);
  return { picture: track, ...(sound ? { sound } : {}) };
}

/**
 * Plays the sound of a room, without directions. Browsers play nothing before the first click or
 * key. Returns the function that ends the playback.
 */
export function playSound(room: Room): () => void {
  const elements = new Map<string, HTMLAudioElement>();
  const over = new AbortController();
  const end = (element: HTMLAudioElement | undefined): void => {
    if (element) {
      element.pause();
      element.srcObject = null;
    }
  };
  const add = ({ id, track }: SoundLine): void => {
    end(elements.get(id));
    const element = new Audio();
    element.srcObject = new MediaStream([track]);
    elements.set(id, element);
    void element.play().catch(() => {
      // The next click or key permits the playback.
      for (const event of ["pointerdown", "keydown"]) {
        addEventListener(event, () => void element.play().catch(() => {}), { once: true, signal: over.signal });
      }
    });
  };
  const remove = (id: string): void => {
    end(elements.get(id));
    elements.delete(id);
  };
  room.soundLines.forEach(add);
  const listeners = [room.on("sound", add), room.on("soundEnded", remove)];
  return () => {
    listeners.forEach((off) => off());
    over.abort();
    elements.forEach(end);
    elements.clear();
  };
}
