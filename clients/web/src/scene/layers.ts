// The layers of objects that are drawn into images of their own before the scene. Layer 0 is drawn
// with the scene; 1 and 2 are the eyes of a headset.

/** Clouds of points. */
export const pointsLayer = 3;
/** Surfels that determine the nearest surface of each pixel. */
export const coverLayer = 4;
/** The same surfels, of which those near the nearest surface are blended. */
export const blendLayer = 5;
