// The row of a participant: screens, body and webcams side by side.

import { pictureSource } from "../media/picture";
import type { Publication } from "../signal/messages";

/** A body takes this width, with the gap to a neighbour, in metres. */
const bodyWidth = 0.8;
const gap = 0.15;
/** The room on both sides of a row, so that a body alone has the usual place. */
const side = 0.15;

export interface Size {
  width: number;
  height: number;
}

interface PanelShape {
  /** The middle and the size of the panel, in the publication's coordinates and in metres. */
  middle: [number, number, number];
  size: Size;
  /** The scale at which the viewer shows the panel: publishers may describe any size. */
  scale: number;
}

/** The size of panels that publishers do not describe, and the greatest size at which panels are shown. */
const usual: Record<"camera" | "screen", Size> = { camera: { width: 0.8, height: 0.45 }, screen: { width: 1.6, height: 0.9 } };
const most: Record<"camera" | "screen", Size> = { camera: { width: 0.9, height: 0.7 }, screen: { width: 1.8, height: 1.2 } };
const least = 0.01;

/** The height of the middle of panels without a pose, in metres: that of a face, and lower for screens, which are larger. */
const heights: Record<"camera" | "screen", number> = { camera: 1.4, screen: 1.3 };

export function heightOf(publication: Publication): number {
  return heights[pictureSource(publication)];
}

/** Returns the panel of a picture, by the box of its tile. */
export function panelShape(publication: Publication): PanelShape {
  const source = pictureSource(publication);
  const box = publication.tiles[0]?.box;
  const [width, height] = box ? [box.max[0] - box.min[0], box.max[1] - box.min[1]] : [0, 0];
  if (!box || !(width > least && height > least)) {
    return { middle: [0, heights[source], 0], size: usual[source], scale: 1 };
  }
  const { min, max } = box;
  const middle: [number, number, number] = [(min[0] + max[0]) / 2, (min[1] + max[1]) / 2, (min[2] + max[2]) / 2];
  return { middle, size: { width, height }, scale: Math.min(1, most[source].width / width, most[source].height / height) };
}

export interface Row {
  width: number;
  /** The middle of each member along the row, from its middle to the right. */
  body: number;
  panels: Map<string, number>;
}

/**
 * Arranges a participant's body, if any, and panels: screens to the left, webcams to the right, by
 * name. So the order does not depend on the order of joining.
 */
export function rowOf(body: boolean, panels: readonly Publication[]): Row {
  const sorted = [...panels].sort((a, b) => (a.name < b.name ? -1 : 1));
  const members: { name: string | undefined; width: number }[] = [
    ...sorted.filter((p) => pictureSource(p) === "screen").map(member),
    ...(body || panels.length === 0 ? [{ name: undefined, width: bodyWidth }] : []),
    ...sorted.filter((p) => pictureSource(p) === "camera").map(member),
  ];
  const width = members.reduce((sum, m) => sum + m.width, (members.length - 1) * gap);
  const row: Row = { width: width + 2 * side, body: 0, panels: new Map() };
  let at = -width / 2;
  for (const m of members) {
    const middle = at + m.width / 2;
    if (m.name === undefined) {
      row.body = middle;
    } else {
      row.panels.set(m.name, middle);
    }
    at += m.width + gap;
  }
  return row;
}

function member(publication: Publication): { name: string; width: number } {
  const { size, scale } = panelShape(publication);
  return { name: publication.name, width: scale * size.width };
}
