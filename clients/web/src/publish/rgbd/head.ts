// Writing of the head of a frame of "rgbd" (docs/codec.md, "The format of rgbd").

import { fixedBytes, flagGrowing, flagPose, flagDistortion, distortionBytes, type Head, identity, models, poseBytes, version } from "../../decode/rgbd/head";

/** The head of a frame for writing: its length follows from the camera. */
export type HeadContent = Omit<Head, "bytes">;

/** Writes a head at the start of data, and returns its length in bytes. */
export function writeHead(data: Uint8Array, head: HeadContent): number {
  const { camera } = head;
  const { distortion, pose: { rotation, translation } } = camera;
  const posed = translation.some((v) => v !== 0) || rotation.some((v, i) => v !== identity[i]);
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  data[0] = version;
  data[1] = (head.growing ? flagGrowing : 0) | (posed ? flagPose : 0) | (distortion ? flagDistortion : 0);
  data[2] = head.reduction;
  data[3] = head.kind;
  data[4] = head.quality;
  data[5] = models.indexOf(distortion?.model);
  data[6] = 0;
  data[7] = 0;
  view.setUint32(8, head.id, true);
  [camera.width, camera.height, head.left, head.top, head.columns, head.rows].forEach((v, i) => view.setUint16(12 + 2 * i, v, true));
  view.setUint32(24, head.points, true);
  view.setUint32(28, head.nearest, true);
  view.setFloat32(32, head.step, true);
  view.setUint32(36, head.planes, true);
  const floats = (at: number, values: readonly number[]): void => values.forEach((v, i) => view.setFloat32(at + 4 * i, v, true));
  floats(40, [camera.fx, camera.fy, camera.cx, camera.cy]);
  if (posed) {
    floats(fixedBytes, [...translation, ...quaternionOf(rotation)]);
  }
  const behind = fixedBytes + (posed ? poseBytes : 0);
  if (distortion) {
    floats(behind, [...distortion.coefficients, distortion.radius]);
  }
  return behind + (distortion ? distortionBytes : 0);
}

/**
 * Returns a rotation as a quaternion x, y, z, w of length 1 (Shepperd, "Quaternion from rotation
 * matrix", 1978).
 */
export function quaternionOf(rotation: readonly number[]): number[] {
  const [r00, r01, r02, r10, r11, r12, r20, r21, r22] = rotation as [number, number, number, number, number, number, number, number, number];
  const squares = [1 + r00 - r11 - r22, 1 - r00 + r11 - r22, 1 - r00 - r11 + r22, 1 + r00 + r11 + r22];
  const largest = squares.indexOf(Math.max(...squares));
  const rows = [
    [squares[0]!, r10 + r01, r02 + r20, r21 - r12],
    [r10 + r01, squares[1]!, r21 + r12, r02 - r20],
    [r02 + r20, r21 + r12, squares[2]!, r10 - r01],
    [r21 - r12, r02 - r20, r10 - r01, squares[3]!],
  ];
  const row = rows[largest]!;
  const length = Math.hypot(...row);
  return row.map((v) => v / length);
}
