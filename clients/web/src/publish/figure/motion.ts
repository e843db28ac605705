// The motion of the demonstration figure: it breathes, looks around, shifts its weight, gestures
// and occasionally waves.

import { armAxis, Bone, boneCount, joints, steps } from "./skeleton";
import { about, add, after, length, mix, type Motion, ramp, scale, still, type Turn, type Vector, wander } from "./vector";

/**
 * The motions of every bone's skin: for each bone its joint's rotation in fractions 0, 1/12 …
 * 12/12, as motions of twelve numbers.
 */
export const paletteSize = boneCount * (steps + 1) * 12;

const degree = Math.PI / 180;
const front: Vector = [0, 0, 1];
const up: Vector = [0, 1, 0];
const side: Vector = [1, 0, 0];

/** The arms are 32° closer to the body than in the sampled pose. */
const hanging = 32 * degree;
/** The interval between waves of the right hand in seconds, and the duration of a wave. */
const waveEvery = 14;
const waveTakes = 3.2;

export class Motions {
  private readonly bones: Motion[] = Array.from({ length: boneCount }, still);

  constructor(private readonly seed: number) {}

  /** Fills the palette for an instant in seconds. */
  fill(palette: Float32Array, t: number): void {
    const turns = this.turns(t);
    this.bones[Bone.pelvis] = still();
    for (let bone = Bone.pelvis; bone < boneCount; bone++) {
      const joint = joints.get(bone);
      for (let step = 0; step <= steps; step++) {
        const at = (bone * (steps + 1) + step) * 12;
        const moved = joint ? this.moved(joint.parent, about(joint.pivot, turns.get(bone) ?? none, step / steps)) : still();
        palette.set(moved, at);
        if (step === steps) {
          this.bones[bone] = moved;
        }
      }
    }
  }

  private moved(parent: Bone, turn: Motion): Motion {
    return after(this.bones[parent]!, turn);
  }

  /** Reports whether the eyes are closed: for an eighth of a second, every few seconds. */
  blinks(t: number): boolean {
    const period = 3.7;
    return (t + 1.1 * wander(this.seed, 30, Math.floor(t / period))) % period < 0.13;
  }

  private turns(t: number): Map<Bone, Turn> {
    const drift = (channel: number, seconds: number): number => wander(this.seed, channel, t / seconds);
    const breath = Math.sin((2 * Math.PI * t) / 4.2);
    const talk = ramp(-0.1, 0.35, drift(1, 6));
    const turns = new Map<Bone, Turn>([
      [Bone.spine, { axis: front, angle: 2.2 * degree * drift(2, 3.1) }],
      [Bone.chest, sum({ axis: up, angle: 4 * degree * drift(3, 4.3) }, { axis: side, angle: -0.9 * degree * breath })],
      [Bone.neck, { axis: side, angle: degree * (2 + 5 * drift(4, 2.3) + 2.5 * talk * Math.sin(5.1 * t)) }],
      [Bone.head, { axis: up, angle: 17 * degree * drift(5, 2.6) }],
      [Bone.jaw, { axis: side, angle: degree * 5 * talk * Math.max(0, Math.sin(11 * t) + 0.6 * Math.sin(17.3 * t)) }],
    ]);
    this.arm(turns, t, 1, talk, 0);
    this.arm(turns, t, -1, talk, this.waving(t));
    return turns;
  }

  /** Returns the elevation of the right hand for a wave, 0 to 1. */
  private waving(t: number): number {
    const into = (t + 2) % waveEvery;
    return ramp(0, 0.7, into) * (1 - ramp(waveTakes - 0.7, waveTakes, into));
  }

  /** Computes one arm: which is 1 for the left, -1 for the right. */
  private arm(turns: Map<Bone, Turn>, t: number, which: 1 | -1, talk: number, wave: number): void {
    const channel = which === 1 ? 10 : 20;
    const gesture = talk * (0.55 + 0.45 * wander(this.seed, channel, t / 0.9));
    const bend = degree * (14 + 62 * gesture);
    const outward = hanging - degree * 6 * gesture;
    const [upper, fore, hand] = which === 1
      ? [Bone.leftUpperArm, Bone.leftForearm, Bone.leftHand] : [Bone.rightUpperArm, Bone.rightForearm, Bone.rightHand];
    // The arm hangs down at the body, or is raised for a wave.
    turns.set(upper, { axis: front, angle: which * mix(-outward, 28 * degree, wave) });
    const elbow: Vector = [armAxis[0], which * armAxis[1], 0];
    const raised = which * (95 + 16 * Math.sin(8.5 * t)) * degree * wave;
    turns.set(fore, sum({ axis: elbow, angle: -bend * (1 - wave) }, { axis: front, angle: raised }));
    turns.set(hand, { axis: elbow, angle: 10 * degree * gesture * Math.sin(6.3 * t + channel) });
  }
}

const none: Turn = { axis: up, angle: 0 };

/** Returns the rotation about the axes of both at once. */
function sum(a: Turn, b: Turn): Turn {
  const both = add(scale(a.axis, a.angle), scale(b.axis, b.angle));
  const angle = length(both);
  return angle === 0 ? none : { axis: scale(both, 1 / angle), angle };
}
