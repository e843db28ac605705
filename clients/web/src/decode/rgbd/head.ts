// The head of a frame of "rgbd" (docs/codec.md, "The format of rgbd"). Numbers are little-endian.

import { boundPoints, DecodeError } from "../points";
import type { Camera, CameraPose, Distortion } from "./raster";

/** The sizes of a head without pose and distortion, and of both, in bytes. */
export const fixedBytes = 56;
export const poseBytes = 28;
export const distortionBytes = 36;

export const version = 1;

/** The flags of a head. */
export const flagGrowing = 1;
export const flagPose = 2;
export const flagDistortion = 4;
const flags = 7;

/** The kinds of colours. */
export const kindNone = 0;
export const kindTables = 1;
export const kindFile = 2;
export const kindWebP = 3;

export const maxReduction = 2;
/** The limits of a step, in metres or in 1/m. */
export const minStep = 1e-6;
export const maxStep = 1;
/** The largest depth code, and the largest depth in metres. */
export const mostCode = 65_535;
export const maxDepth = 1e4;

/** The limits of a camera: pixels of its image, distance from the origin in metres, and other numbers. */
const maxPixels = 1 << 24;
const maxPlace = 1e4;
const maxNumber = 1e6;
const minFocal = 1e-6;

/** Lens distortion models by their numbers in frames. */
export const models: readonly (Distortion["model"] | undefined)[] = [
  undefined, "brown-conrady", "modified-brown-conrady", "inverse-brown-conrady", "kannala-brandt4", "rational",
];

export const identity: readonly number[] = [1, 0, 0, 0, 1, 0, 0, 0, 1];

export interface Head {
  growing: boolean;
  reduction: number;
  kind: number;
  quality: number;
  id: number;
  camera: Camera;
  left: number;
  top: number;
  columns: number;
  rows: number;
  /** The number of pixels with a depth. */
  points: number;
  /** The depth of code 0 in steps. */
  nearest: number;
  step: number;
  /** The size of mask and depths in bytes. */
  planes: number;
  /** The size of the head in bytes. */
  bytes: number;
}

function refuse(problem: string): DecodeError {
  return new DecodeError(`rgbd: ${problem}`);
}

/** Returns the depth of a code in metres. */
export function depthOf({ growing, step, nearest }: Pick<Head, "growing" | "step" | "nearest">, code: number): number {
  return growing ? 1 / (step * (nearest - code)) : step * (nearest + code);
}

/** Returns the largest code whose depth is valid. */
export function mostCodeOf({ growing, step, nearest }: Pick<Head, "growing" | "step" | "nearest">): number {
  if (growing) {
    return Math.min(mostCode, nearest - Math.max(1, Math.ceil(1 / (maxDepth * step))));
  }
  return Math.min(mostCode, Math.trunc(maxDepth / step) - nearest);
}

/** Reads and checks the head of a frame. It allocates nothing for the pixels. */
export function parseHead(data: Uint8Array): Head {
  if (data.length < fixedBytes) {
    throw refuse(`frame has ${data.length} bytes, expected at least ${fixedBytes}`);
  }
  const set = data[1]!;
  if (data[0] !== version) {
    throw refuse(`version is ${data[0]}, expected ${version}`);
  }
  if (set > flags || data[2]! > maxReduction || data[3]! > kindWebP || data[6] !== 0 || data[7] !== 0) {
    throw refuse(
      `head begins with ${[...data.subarray(0, 8)].join(" ")}, expected flags of at most ${flags}, reduction of at most ${maxReduction}, ` +
        `colours of kind 0 to ${kindWebP} and zeros`,
    );
  }
  const bytes = fixedBytes + (set & flagPose ? poseBytes : 0) + (set & flagDistortion ? distortionBytes : 0);
  if (data.length < bytes) {
    throw refuse(`frame has ${data.length} bytes, expected a head of ${bytes}`);
  }
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const short = (at: number): number => view.getUint16(at, true);
  const head: Head = {
    growing: (set & flagGrowing) !== 0, reduction: data[2]!, kind: data[3]!, quality: data[4]!, id: view.getUint32(8, true),
    camera: parseCamera(view, set, data[5]!),
    left: short(16), top: short(18), columns: short(20), rows: short(22),
    points: view.getUint32(24, true), nearest: view.getUint32(28, true), step: view.getFloat32(32, true), planes: view.getUint32(36, true), bytes,
  };
  check(head, data.length);
  return head;
}

function floats(view: DataView, at: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => view.getFloat32(at + 4 * i, true));
}

/** Reports whether a number is finite and of a size that leaves the precision of coordinates intact. */
function finite(v: number): boolean {
  return Math.abs(v) <= maxNumber;
}

function parseCamera(view: DataView, set: number, model: number): Camera {
  const [fx, fy, cx, cy] = floats(view, 40, 4) as [number, number, number, number];
  const [width, height] = [view.getUint16(12, true), view.getUint16(14, true)];
  const posed = (set & flagPose) !== 0;
  const pose = posed ? parsePose(floats(view, fixedBytes, 7)) : { rotation: identity, translation: [0, 0, 0] };
  if ((model === 0) !== ((set & flagDistortion) === 0)) {
    throw refuse(`distortion model is ${model} with flags ${set}, expected 0 without distortion only`);
  }
  if (width < 1 || height < 1 || width * height > maxPixels) {
    throw refuse(`camera has ${width}×${height} pixels, expected 1 to ${maxPixels}`);
  }
  const usable = (v: number): boolean => v >= minFocal && v <= maxNumber;
  if (!usable(fx) || !usable(fy) || !finite(cx) || !finite(cy)) {
    throw refuse(`focal lengths are ${fx} and ${fy}, principal point is ${cx}, ${cy}, expected lengths above 0 and finite pixels`);
  }
  const distortion = model === 0 ? undefined : parseDistortion(floats(view, fixedBytes + (posed ? poseBytes : 0), 9), model);
  return { width, height, fx, fy, cx, cy, distortion, pose };
}

function parseDistortion(values: readonly number[], number: number): Distortion {
  const model = models[number];
  const coefficients = values.slice(0, 8);
  const radius = values[8]!;
  if (!model || !coefficients.every(finite) || !(radius >= 0 && radius <= maxNumber)) {
    throw refuse(`distortion is model ${number} with ${values.join(", ")}, expected 1 to ${models.length - 1} with finite numbers`);
  }
  return { model, coefficients, radius };
}

/** Converts x, y, z and a quaternion to a motion. */
function parsePose(values: readonly number[]): CameraPose {
  const translation = values.slice(0, 3);
  const [x, y, z, w] = values.slice(3) as [number, number, number, number];
  const norm = x * x + y * y + z * z + w * w;
  if (!(Math.abs(norm - 1) < 1e-3) || !translation.every((v) => Math.abs(v) <= maxPlace)) {
    throw refuse(`pose is ${values.join(", ")}, expected metres of at most ${maxPlace} and a quaternion of length 1`);
  }
  const s = 2 / norm;
  const rotation = [
    1 - s * (y * y + z * z), s * (x * y - z * w), s * (x * z + y * w),
    s * (x * y + z * w), 1 - s * (x * x + z * z), s * (y * z - x * w),
    s * (x * z - y * w), s * (y * z + x * w), 1 - s * (x * x + y * y),
  ];
  return { rotation, translation };
}

/** Checks the numbers of a head against each other and the size of the frame. */
function check(head: Head, length: number): void {
  const { camera, reduction, left, top, columns, rows, points, nearest, step, planes, kind, quality } = head;
  const edge = 1 << reduction;
  const [across, down] = [Math.ceil(camera.width / edge), Math.ceil(camera.height / edge)];
  if (columns === 0 || rows === 0 || left + columns > across || top + rows > down) {
    throw refuse(`rectangle has ${columns}×${rows} pixels at ${left}, ${top}, expected pixels within ${across}×${down}`);
  }
  boundPoints("rgbd", columns * rows, length);
  if (points === 0 || points > columns * rows) {
    throw refuse(`${points} points, expected 1 to ${columns * rows}`);
  }
  if (!(step >= Math.fround(minStep) && step <= maxStep)) {
    throw refuse(`step is ${step}, expected ${minStep} to ${maxStep}`);
  }
  if (nearest === 0 || !(depthOf(head, 0) <= maxDepth)) {
    throw refuse(`nearest depth is ${nearest} steps of ${step}, expected more than 0 and at most ${maxDepth} m`);
  }
  const rest = length - head.bytes;
  if (planes === 0 || planes > rest) {
    throw refuse(`mask and depths have ${planes} bytes, expected 1 to ${rest}`);
  }
  if ((kind === kindTables) !== quality > 0 || quality > 100) {
    throw refuse(`quality is ${quality} for colours of kind ${kind}, expected 1 to 100 for kind ${kindTables} and 0 for others`);
  }
  if (kind === kindNone && planes !== rest) {
    throw refuse(`${rest - planes} bytes behind the depths of a frame without colours, expected none`);
  }
}
