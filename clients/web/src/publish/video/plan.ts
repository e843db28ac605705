// The qualities of a webcam or a screen: the sizes and rates at which the browser encodes its
// picture.

import type { Publication } from "../../signal/messages";

export type VideoKind = "webcam" | "screen";
export type VideoCodec = "VP8" | "H264";

export interface Encoding {
  name: string;
  width: number;
  height: number;
  fps: number;
  bps: number;
  /** The picture's width over the encoded width. */
  scale: number;
}

/** The picture of the device: its size in pixels, and pictures per second. */
export interface Capture {
  width: number;
  height: number;
  fps: number;
}

interface Ladder {
  /** From the highest quality to the lowest: the divisors of width and height, and the most pictures per second. */
  steps: readonly { scale: number; fps: number }[];
  /** The pixels of a picture and the rate in bit/s for it. */
  pixels: number;
  bps: number;
  /** Pictures of less height than this, in pixels, are not worth another quality. */
  leastHeight: number;
  /** The width of the panel in metres, and the height of the middle of a panel that stands alone. */
  width: number;
  middle: number;
}

/**
 * A webcam of 1280 × 720 has 1.5 Mbit/s, which VP8 needs for a face in motion. Screens have more
 * detail, and fewer changes; text must stay sharp, so that the lower quality has fewer pictures
 * instead of fewer pixels than half the width.
 */
const ladders: Record<VideoKind, Ladder> = {
  webcam: {
    steps: [{ scale: 1, fps: 30 }, { scale: 2, fps: 30 }, { scale: 4, fps: 15 }], pixels: 1280 * 720, bps: 1_500_000, leastHeight: 120, width: 0.8, middle: 1.4,
  },
  screen: { steps: [{ scale: 1, fps: 15 }, { scale: 2, fps: 5 }], pixels: 1920 * 1080, bps: 2_500_000, leastHeight: 240, width: 1.6, middle: 1.3 },
};

const names = ["low", "mid", "high"] as const;

/** The rate rises with this power of the number of pixels: larger pictures have less detail per pixel. */
const sizePower = 0.75;
/** With fewer pictures per second, each differs more from the one before. */
const timePower = 0.5;
const usualFps = 30;

/** Returns the qualities of a picture, the lowest first. */
export function encodingsOf(kind: VideoKind, { width, height, fps }: Capture): Encoding[] {
  const ladder = ladders[kind];
  const steps = ladder.steps.filter(({ scale }) => scale === 1 || height / scale >= ladder.leastHeight);
  const top = ladder.steps[0]!;
  return steps.map((step, i) => {
    const share = (width * height) / (step.scale ** 2 * ladder.pixels);
    const rate = Math.min(step.fps, fps || usualFps);
    return {
      name: names[names.length - 1 - i]!,
      width: Math.floor(width / step.scale),
      height: Math.floor(height / step.scale),
      fps: rate,
      bps: Math.round((ladder.bps * share ** sizePower * Math.min(1, rate / top.fps) ** timePower) / 1000) * 1000,
      scale: step.scale,
    };
  }).reverse();
}

/** Returns the server's description of a webcam or a screen. */
export function describeVideo(kind: VideoKind, codec: VideoCodec, { width, height }: Capture, encodings: readonly Encoding[]): Publication {
  const ladder = ladders[kind];
  const [x, y] = [ladder.width / 2, (ladder.width * height) / width / 2];
  return {
    name: kind,
    kind: "video",
    mode: "alternatives",
    codec: { mime_type: `video/${codec}`, clock_rate: 90_000 },
    frame_rate: Math.max(...encodings.map((e) => e.fps)),
    picture: { source: kind === "screen" ? "screen" : "camera" },
    tiles: [{ box: { min: [-x, ladder.middle - y, 0], max: [x, ladder.middle + y, 0] } }],
    qualities: encodings.map((e) => ({ name: e.name, bitrate_bps: e.bps, width: e.width, height: e.height, frame_rate: e.fps })),
  };
}

/** Returns the parameters for the sender of an encoding, which rests unless it is active. */
export function parametersOf({ scale, bps, fps }: Encoding, active: boolean): RTCRtpEncodingParameters {
  return { active, scaleResolutionDownBy: scale, maxBitrate: bps, maxFramerate: fps };
}
