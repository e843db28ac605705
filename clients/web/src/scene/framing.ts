// The first view: the eye and the point that it looks at, so that people fill the picture.

/** A box in the room that is in the picture: an upright cylinder around a person, or a panel. */
export interface Framed {
  middle: [number, number];
  /** Half the width, seen from any side. */
  radius: number;
  low: number;
  top: number;
}

/** The free part of the picture, in normalized device coordinates: the rest has the controls. */
export interface Margins {
  side: number;
  bottom: number;
  top: number;
}

export interface View {
  eye: [number, number, number];
  target: [number, number, number];
}

/** The least distance of the eye from the middle of the nearest person, in metres. */
const nearest = 0.9;
const farthest = 40;
/** The eye is at this part of the height of the people, between lowest and highest points. */
const eyeShare = 0.78;
/** The height of a nameplate above a person, which is in the picture, too. */
export const plate = 0.16;

/**
 * Returns the nearest view along −z that has all of the given objects in the free part of the picture.
 * @param high is half the height of the view at a distance of 1, and wide half the width
 */
export function viewOf(objects: readonly Framed[], high: number, wide: number, margins: Margins): View {
  if (objects.length === 0) {
    return { eye: [0, 1.55, 2.4], target: [0, 1.05, 0] };
  }
  const low = Math.min(...objects.map((o) => o.low));
  const top = Math.max(...objects.map((o) => o.top)) + plate;
  const left = Math.min(...objects.map((o) => o.middle[0] - o.radius));
  const right = Math.max(...objects.map((o) => o.middle[0] + o.radius));
  const front = Math.max(...objects.map((o) => o.middle[1]));
  const x = (left + right) / 2;
  const y = low + eyeShare * (top - low);
  let view = at(x, y, front + nearest, objects, low, top, margins, high);
  for (let distance = nearest; distance < farthest; distance *= 1.03) {
    view = at(x, y, front + distance, objects, low, top, margins, high);
    if (fits(view, objects, high, wide, margins)) {
      break;
    }
  }
  return view;
}

/** Returns the view from a distance whose free part has the people in its middle, from top to bottom. */
function at(x: number, y: number, z: number, objects: readonly Framed[], low: number, top: number, { top: upper, bottom }: Margins, high: number): View {
  const depth = z - Math.max(...objects.map((o) => o.middle[1]));
  const angles = [Math.atan2(top - y, depth), Math.atan2(low - y, depth)];
  const free = [Math.atan(upper * high), Math.atan(-bottom * high)];
  const pitch = (angles[0]! + angles[1]! - free[0]! - free[1]!) / 2;
  return { eye: [x, y, z], target: [x, y + depth * Math.tan(pitch), z - depth] };
}

function fits({ eye, target }: View, objects: readonly Framed[], high: number, wide: number, margins: Margins): boolean {
  const pitch = Math.atan2(target[1] - eye[1], eye[2] - target[2]);
  const [sin, cos] = [Math.sin(pitch), Math.cos(pitch)];
  return objects.every(({ middle, radius, low, top }) => [low, top + plate].every((height) => {
    const [up, ahead] = [height - eye[1], eye[2] - middle[1]];
    const depth = ahead * cos + up * sin;
    const rise = (up * cos - ahead * sin) / depth / high;
    const aside = (Math.abs(middle[0] - eye[0]) + radius) / depth / wide;
    return depth > 0.1 && aside <= margins.side && rise <= margins.top && rise >= -margins.bottom;
  }));
}
