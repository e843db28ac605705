// The user's settings for publishing, from the panel or from the link.

import { type Arrangement, boxOfPicture, type DepthCoding, type Lens, usualLens } from "./depth";
import { figureBox, seedOf } from "./figure/figure";
import { standardQualities, tileCounts } from "./tiling";
import type { Codec, Plan } from "./traffic";

export type Kind = "figure" | "camera" | "xr";

export interface Wishes {
  kind: Kind;
  /** The codec of depth cameras and phones. */
  codec: Codec;
  points: number;
  fps: number;
  tiles: number;
  /** Names of the qualities. */
  qualities: string[];
  lens: Lens;
}

export const pointChoices = [10_000, 20_000, 40_000, 80_000] as const;
export const rateChoices = [10, 15, 30] as const;
const mostPoints = 200_000;

/** Settings that suit most computers: a browser's encoder needs twice the time of others. */
const usual: Wishes = { kind: "figure", codec: "rgbd", points: 20_000, fps: 15, tiles: 1, qualities: standardQualities.map((q) => q.name), lens: usualLens };

/**
 * Reads the settings of a link: ?publish=figure&points=20000&fps=15&tiles=4&qualities=low,high, and
 * ?publish=camera&codec=draco; missing or invalid ones have their defaults.
 */
export function wishesOf(query: URLSearchParams): Wishes {
  const number = (name: string, most: number, otherwise: number): number => {
    const value = Math.round(Number(query.get(name)));
    return value >= 1 && value <= most ? value : otherwise;
  };
  const kind = (["camera", "xr"] as const).find((k) => (query.get("publish") ?? "").split(",").includes(k));
  const tiles = number("tiles", 9, usual.tiles);
  const names = standardQualities.map((q) => q.name).filter((name) => (query.get("qualities") ?? name).split(",").includes(name));
  return {
    kind: kind ?? "figure",
    codec: query.get("codec") === "draco" ? "draco" : usual.codec,
    points: number("points", mostPoints, usual.points),
    fps: number("fps", 60, usual.fps),
    tiles: tileCounts.some((c) => c === tiles) ? tiles : usual.tiles,
    qualities: names.length > 0 ? names : usual.qualities,
    lens: lensOf(query),
  };
}

const arrangements: Arrangement[] = ["depth-left", "depth-right", "depth-top", "depth-bottom", "depth-only"];
const codings: DepthCoding[] = ["near-bright", "far-bright", "hue"];

function lensOf(query: URLSearchParams): Lens {
  const positive = (name: string, otherwise: number): number => {
    const value = Number(query.get(name));
    return value > 0 && value < 100 ? value : otherwise;
  };
  const near = positive("near", usualLens.near);
  return {
    arrangement: arrangements.find((a) => a === query.get("arrangement")) ?? usualLens.arrangement,
    coding: codings.find((c) => c === query.get("coding")) ?? usualLens.coding,
    near,
    far: Math.max(positive("far", usualLens.far), near + 0.1),
    fov: Math.max(positive("fov", usualLens.fov), 5),
    height: positive("height", usualLens.height),
  };
}

/**
 * Makes a plan from the settings. aspect is that of the camera's whole picture; identity determines
 * the looks of a figure.
 */
export function planOf(wishes: Wishes, identity: string, aspect: number): Plan {
  const { kind, codec, points, fps, tiles, lens } = wishes;
  const qualities = standardQualities.filter((q) => wishes.qualities.includes(q.name));
  const common = { points, fps, tiles, qualities };
  switch (kind) {
    case "figure":
      return { ...common, source: { kind: "figure", seed: seedOf(identity) }, box: figureBox };
    case "camera":
      return { ...common, codec, source: { kind: "depth", lens }, box: boxOfPicture(lens, aspect) };
    case "xr":
      // This is the view of a phone at arm's length and some steps around.
      return { ...common, codec, source: { kind: "depth", lens }, box: { min: [-1.5, -0.2, -1.5], max: [1.5, 2.2, 1.5] } };
  }
}
