// The colours of qualities.

import { Color } from "three";

/**
 * The colours from the lowest to the highest quality, red to blue, which are also distinguishable
 * with red-green colour blindness.
 */
const tints = [0xd7191c, 0xfdae61, 0xffffbf, 0xabd9e9, 0x2c7bb6].map((c) => new Color(c));

/** Returns the colour of one of several qualities. */
export function tintOf(quality: number, qualities: number): Color {
  const at = qualities > 1 ? Math.round((quality / (qualities - 1)) * (tints.length - 1)) : tints.length - 1;
  return tints[at] ?? tints[0]!;
}
