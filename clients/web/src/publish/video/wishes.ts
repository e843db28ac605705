// The settings of a link for webcams: ?publish=webcam&codec=H264&lines=360, or publish=figure,webcam.

import type { VideoCodec } from "./plan";

export const lineChoices = [360, 480, 720, 1080] as const;

export interface VideoWishes {
  /** The webcam begins with the room. Browsers share screens only after a click. */
  webcam: boolean;
  /** Nothing else begins with the room. */
  alone: boolean;
  codec: VideoCodec;
  /** The height of the webcam's picture in pixels. */
  lines: number;
}

export function videoWishesOf(query: URLSearchParams): VideoWishes {
  const sources = (query.get("publish") ?? "").split(",");
  return {
    webcam: sources.includes("webcam"),
    alone: sources.every((s) => s === "webcam"),
    codec: query.get("codec")?.toUpperCase() === "H264" ? "H264" : "VP8",
    lines: lineChoices.find((n) => n === Number(query.get("lines"))) ?? 720,
  };
}
