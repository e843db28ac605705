// The bones of the demonstration figure, and the way its skin follows them.

import { add, dot, length, mirrored, ramp, scale, sub, type Vector } from "./vector";

/** A rigid part of the body. A bone has a higher number than its parent. */
export enum Bone {
  pelvis, spine, chest, neck, head, jaw,
  leftUpperArm, leftForearm, leftHand, leftThigh, leftShin, leftFoot,
  rightUpperArm, rightForearm, rightHand, rightThigh, rightShin, rightFoot,
}

export const boneCount = 18;

const armAngle = (40 * Math.PI) / 180;

// The left side at rest, in metres: a person of 1.75 m with shoes, upright, facing +z, with the
// arms 40° away from the body. The person's left is at +x.
export const armDirection: Vector = [Math.sin(armAngle), -Math.cos(armAngle), 0];
/** Elbows bend about this axis. */
export const armAxis: Vector = [Math.cos(armAngle), Math.sin(armAngle), 0];
const waist: Vector = [0, 1.04, -0.01];
const midriff: Vector = [0, 1.19, -0.015];
const neckBase: Vector = [0, 1.47, -0.03];
const headBase: Vector = [0, 1.55, -0.005];
const jawHinge: Vector = [0, 1.6, 0];
const mouth: Vector = [0, 1.5655, 0.09];
export const leftShoulder: Vector = [0.175, 1.415, -0.025];
export const leftElbow: Vector = add(leftShoulder, scale(armDirection, 0.285));
export const leftWrist: Vector = add(leftElbow, scale(armDirection, 0.255));
export const leftHip: Vector = [0.09, 0.92, 0];
export const leftKnee: Vector = [0.1, 0.5, 0.012];
export const leftAnkle: Vector = [0.105, 0.085, -0.02];

/**
 * The connection of a bone to its parent: the bone rotates about the pivot, and the skin follows
 * gradually across a zone.
 */
export interface Joint {
  parent: Bone;
  pivot: Vector;
  /**
   * The skin's share of the rotation rises from 0 to 1 from half before the zone's centre to half
   * behind it.
   */
  centre: Vector;
  direction: Vector;
  half: number;
  /**
   * Points on the parent follow up to this distance from the centre, and not at all from twice the
   * distance on.
   */
  reach: number;
}

export const joints: ReadonlyMap<Bone, Joint> = skeleton();

function skeleton(): Map<Bone, Joint> {
  const up: Vector = [0, 1, 0];
  const down: Vector = [0, -1, 0];
  const all = new Map<Bone, Joint>();
  const put = (bone: Bone, parent: Bone, pivot: Vector, centre: Vector, direction: Vector, half: number, reach: number): void => {
    all.set(bone, { parent, pivot, centre, direction, half, reach });
  };
  put(Bone.spine, Bone.pelvis, waist, waist, up, 0.06, 1);
  put(Bone.chest, Bone.spine, midriff, midriff, up, 0.07, 1);
  put(Bone.neck, Bone.chest, neckBase, add(neckBase, [0, 0.01, 0]), up, 0.03, 0.06);
  put(Bone.head, Bone.neck, headBase, headBase, [0, 0.8, 0.6], 0.03, 1);
  put(Bone.jaw, Bone.head, jawHinge, mouth, down, 0.004, 0.035);
  put(Bone.leftUpperArm, Bone.chest, leftShoulder, leftShoulder, [0.866, -0.5, 0], 0.05, 0.06);
  put(Bone.leftForearm, Bone.leftUpperArm, leftElbow, leftElbow, armDirection, 0.04, 1);
  put(Bone.leftHand, Bone.leftForearm, leftWrist, leftWrist, armDirection, 0.02, 1);
  put(Bone.leftThigh, Bone.pelvis, leftHip, [0.1, 0.885, 0], down, 0.06, 0.08);
  put(Bone.leftShin, Bone.leftThigh, leftKnee, leftKnee, down, 0.05, 1);
  put(Bone.leftFoot, Bone.leftShin, leftAnkle, leftAnkle, down, 0.02, 1);
  const right = Bone.rightUpperArm - Bone.leftUpperArm;
  for (let left = Bone.leftUpperArm; left <= Bone.leftFoot; left++) {
    const j = all.get(left)!;
    const parent = j.parent >= Bone.leftUpperArm ? j.parent + right : j.parent;
    put(left + right, parent, mirrored(j.pivot), mirrored(j.centre), mirrored(j.direction), j.half, j.reach);
  }
  return all;
}

function shareOf(j: Joint, p: Vector): number {
  return ramp(-j.half, j.half, dot(sub(p, j.centre), j.direction));
}

/** The number of equal steps of a joint's rotation for the skin. */
export const steps = 12;

/**
 * Returns the motion for a point of a bone's surface: the palette entry of a joint's rotation, full
 * or partial.
 */
export function attach(owner: Bone, p: Vector): number {
  const own = joints.get(owner);
  const share = own ? shareOf(own, p) : 1;
  if (share < 1) {
    return entry(owner, share);
  }
  let child = owner;
  let most = 0;
  for (const [bone, j] of joints) {
    if (j.parent !== owner) {
      continue;
    }
    const taken = shareOf(j, p) * (1 - ramp(j.reach, 2 * j.reach, length(sub(p, j.centre))));
    if (taken > most) {
      child = bone;
      most = taken;
    }
  }
  return most > 0 ? entry(child, most) : entry(owner, 1);
}

function entry(bone: Bone, share: number): number {
  return bone * (steps + 1) + Math.round(share * steps);
}
