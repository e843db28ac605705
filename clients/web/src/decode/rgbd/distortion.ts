// Removal of lens distortions, as in pkg/capture/depth. The models are those of librealsense
// (rsutil.h), and OpenCV's with eight coefficients.

import type { Camera, Distortion } from "./raster";

/** The point of an image plane at depth 1; undefined if there is none. */
type Point = readonly [x: number, y: number] | undefined;

/** Returns the position at which a point of the image plane appears. */
export function apply({ model, coefficients: k, radius }: Distortion, x: number, y: number): Point {
  const r2 = x * x + y * y;
  if (radius > 0 && r2 > radius * radius) {
    return undefined;
  }
  const [k1, k2, p1, p2, k3, k4, k5, k6] = k as [number, number, number, number, number, number, number, number];
  if (model === "kannala-brandt4") {
    const r = Math.sqrt(r2);
    if (r < 1e-12) {
      return [x, y];
    }
    const theta = Math.atan(r);
    const t2 = theta * theta;
    const scale = (theta * (1 + t2 * (k1 + t2 * (k2 + t2 * (p1 + t2 * p2))))) / r;
    return [x * scale, y * scale];
  }
  let f = 1 + r2 * (k1 + r2 * (k2 + r2 * k3));
  if (model === "rational") {
    f /= 1 + r2 * (k4 + r2 * (k5 + r2 * k6));
    if (Math.abs(f) === Infinity) {
      return undefined;
    }
  }
  if (model === "brown-conrady" || model === "rational") {
    return [x * f + 2 * p1 * x * y + p2 * (r2 + 2 * x * x), y * f + 2 * p2 * x * y + p1 * (r2 + 2 * y * y)];
  }
  const [u, v] = [x * f, y * f];
  return [u + 2 * p1 * u * v + p2 * (r2 + 2 * u * u), v + 2 * p2 * u * v + p1 * (r2 + 2 * v * v)];
}

/**
 * The steps of Newton's method, the step of its numeric derivative, the residue at which it ends, and
 * the permitted residue after the last step.
 */
const newtonSteps = 20;
const newtonStep = 1e-6;
const newtonTarget = 1e-9;
const newtonAllowed = 1e-6;

/** Returns the point of the image plane that appears at u, v; undefined if the model folds back there. */
function remove(distortion: Distortion, u: number, v: number): Point {
  let [x, y] = guess(distortion, u, v);
  for (let step = 0; step < newtonSteps; step++) {
    const at = apply(distortion, x, y);
    const right = apply(distortion, x + newtonStep, y);
    const down = apply(distortion, x, y + newtonStep);
    if (!at || !right || !down) {
      return undefined;
    }
    const [j00, j10] = [(right[0] - at[0]) / newtonStep, (right[1] - at[1]) / newtonStep];
    const [j01, j11] = [(down[0] - at[0]) / newtonStep, (down[1] - at[1]) / newtonStep];
    const determinant = j00 * j11 - j01 * j10;
    if (!(determinant > 1e-9)) {
      return undefined;
    }
    const [ex, ey] = [u - at[0], v - at[1]];
    if (Math.abs(ex) + Math.abs(ey) < newtonTarget) {
      return [x, y];
    }
    x += (j11 * ex - j01 * ey) / determinant;
    y += (j00 * ey - j10 * ex) / determinant;
  }
  const at = apply(distortion, x, y);
  return at && Math.abs(u - at[0]) + Math.abs(v - at[1]) < newtonAllowed ? [x, y] : undefined;
}

/** Returns the start value: the images of fisheye lenses have angles, which differ from their tangents. */
function guess({ model }: Distortion, u: number, v: number): readonly [number, number] {
  const theta = Math.hypot(u, v);
  if (model !== "kannala-brandt4" || theta < 1e-12 || theta > 1.5) {
    return [u, v];
  }
  const scale = Math.tan(theta) / theta;
  return [u * scale, v * scale];
}

/** Returns the point of the image plane, y down, that a pixel of a camera sees. */
export function deproject({ fx, fy, cx, cy, distortion }: Camera, u: number, v: number): Point {
  const [x, y] = [(u - cx) / fx, (v - cy) / fy];
  return distortion ? remove(distortion, x, y) : [x, y];
}
