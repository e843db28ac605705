// A decoded frame of "rgbd": a rectangle of a depth camera's image; see docs/codec.md, "The format
// of rgbd".

/** A depth camera: a pinhole camera with an optional lens distortion, and its place. */
export interface Camera {
  /** The size of its image in pixels, without a reduction. */
  width: number;
  height: number;
  /** Focal lengths and principal point in pixels; the centre of the first pixel is at 0, 0. */
  fx: number;
  fy: number;
  cx: number;
  cy: number;
  distortion: Distortion | undefined;
  pose: CameraPose;
}

/** A lens distortion. */
export interface Distortion {
  model: "brown-conrady" | "modified-brown-conrady" | "inverse-brown-conrady" | "kannala-brandt4" | "rational";
  /** k1, k2, p1, p2, k3, k4, k5, k6; of kannala-brandt4 the first four are k1 to k4. */
  coefficients: readonly number[];
  /** The largest valid distance from the axis in the image plane at depth 1; 0 if unlimited. */
  radius: number;
}

/** The motion from the coordinates of a camera (x right, y up, z back) to those of the publication. */
export interface CameraPose {
  /** A rotation, row by row. */
  rotation: readonly number[];
  /** In metres. */
  translation: readonly number[];
}

/**
 * One tile. The pixel of column x and row y of the rectangle is at
 * u = (left + x + ½) × 2^reduction − ½ of the camera's image, and v likewise. Without a distortion
 * it sees X = (u − cx) / fx, Y = (v − cy) / fy; Rays computes both with a distortion. With depth z,
 * the point is (X z, −Y z, −z) in the coordinates of the camera.
 */
export interface Raster {
  camera: Camera;
  /** Frames of one publication with the same id are of the same camera. */
  id: number;
  /** A pixel combines 2^reduction × 2^reduction pixels of the camera: 0, 1 or 2. */
  reduction: number;
  /** The rectangle in pixels of the reduced image. */
  left: number;
  top: number;
  columns: number;
  rows: number;
  /** The number of pixels with a point, at least 1. */
  points: number;
  /**
   * The depth of each pixel in metres along the view, row by row from the top; 0 for a pixel without
   * a point. The array may be longer than columns × rows, since its memory is reused.
   */
  depths: Float32Array<ArrayBuffer>;
  /** The distance between representable depths: in metres, or in 1/m if steps grow as step × depth². */
  step: number;
  growing: boolean;
  /**
   * Red, green, blue and 255 for each pixel, row by row from the top; undefined if the points are
   * white. Pixels without a depth have any colour. The array may be longer, since its memory is reused.
   */
  colors: Uint8Array<ArrayBuffer> | undefined;
}
