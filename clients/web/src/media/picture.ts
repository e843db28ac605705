// Publications of flat pictures, as of webcams and screens, which the browser's own codecs encode
// and decode.

import type { Publication } from "../signal/messages";

/** Reports whether a publication has frames of H264 or VP8, which the browser decodes. */
export function isPicture({ kind, codec }: Publication): boolean {
  return kind === "video" && /^video\/(vp8|h264)$/i.test(codec.mime_type);
}

/** Returns the source of a picture; publishers of other kinds, such as WHIP, may not name one. */
export function pictureSource({ picture }: Publication): "camera" | "screen" {
  return picture?.source ?? "camera";
}
