// Webcams and shared screens, as the browser gives them to pages.

import { unlessAborted } from "../opening";
import { explain, Lacking, lacksDevices } from "../camera";
import type { Capture, VideoKind } from "./plan";

/** The most pictures per second, and pixels of a screen. */
const mostFps = 30;
const screenSize = { width: 1920, height: 1080 };

/** An opened webcam or screen. */
export interface Opened {
  track: MediaStreamTrack;
  /** The sound of a screen, if the browser gives it. */
  sound: MediaStreamTrack | undefined;
  capture: Capture;
}

/** Returns the reason why this page cannot share the screen, or undefined. */
export function lacksScreen(): string | undefined {
  return lacksDevices() ?? (typeof navigator.mediaDevices.getDisplayMedia === "function" ? undefined : "This browser cannot share the screen. Browsers on computers can, those on phones cannot.");
}

/**
 * Opens a webcam or asks the user for a screen. It throws errors with a message for the user; the
 * signal's reason if the signal is aborted meanwhile.
 */
export async function openVideo(kind: VideoKind, { camera, lines }: { camera: string; lines: number }, signal: AbortSignal): Promise<Opened> {
  const missing = kind === "screen" ? lacksScreen() : lacksDevices();
  if (missing) {
    throw new Lacking(missing);
  }
  const opening = kind === "screen" ? openScreen() : openWebcam(camera, lines);
  const stream = await unlessAborted(signal, opening, stop);
  const track = stream.getVideoTracks()[0];
  if (!track) {
    stop(stream);
    throw new Lacking(`The ${kind} has no picture. Try again, or restart the browser.`);
  }
  track.contentHint = kind === "screen" ? "detail" : "motion";
  const { width = 0, height = 0, frameRate = mostFps } = track.getSettings();
  return { track, sound: stream.getAudioTracks()[0], capture: { width: width || 1280, height: height || 720, fps: Math.min(Math.round(frameRate) || mostFps, mostFps) } };
}

function stop(stream: MediaStream): void {
  stream.getTracks().forEach((track) => track.stop());
}

async function openWebcam(camera: string, lines: number): Promise<MediaStream> {
  try {
    return await navigator.mediaDevices.getUserMedia({
      video: { height: { ideal: lines }, width: { ideal: Math.round((lines * 16) / 9) }, frameRate: { ideal: mostFps, max: mostFps }, ...(camera ? { deviceId: { exact: camera } } : {}) },
    });
  } catch (error) {
    throw explain(error, "camera");
  }
}

async function openScreen(): Promise<MediaStream> {
  // The members beyond the type are hints of recent browsers: the sound of the system, and a button
  // for another tab.
  const wishes = {
    video: { width: { max: screenSize.width }, height: { max: screenSize.height }, frameRate: { max: mostFps } }, audio: true, systemAudio: "include", surfaceSwitching: "include", selfBrowserSurface: "exclude",
  };
  try {
    return await navigator.mediaDevices.getDisplayMedia(wishes as DisplayMediaStreamOptions);
  } catch (error) {
    throw explainScreen(error);
  }
}

/** Explains why a screen is not shared. A refusal by the user is the usual way to change one's mind. */
export function explainScreen(error: unknown): Lacking {
  switch (error instanceof DOMException ? error.name : "") {
    case "NotAllowedError":
      return new Lacking("Nothing is shared: no screen was chosen, or the browser or the system does not permit it. On a Mac, the browser needs the permission for screen recording in the system's settings.");
    case "InvalidStateError":
      return new Lacking("Browsers share a screen only right after a click. Press the button again.");
    case "NotFoundError":
      return new Lacking("There is no screen or window that could be shared.");
    case "NotReadableError":
      return new Lacking("The system does not permit the browser to read this screen or window. Choose another one.");
    default:
      return new Lacking(`The screen cannot be shared: ${error instanceof Error ? error.message : String(error)}`);
  }
}
