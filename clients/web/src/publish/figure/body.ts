// The body of the demonstration figure at rest. Its measures, in metres, are typical of an adult of 1.75 m.

import { armDirection, Bone, leftAnkle, leftElbow, leftHip, leftKnee, leftShoulder, leftWrist } from "./skeleton";
import { both, cone, ellipsoid, Field, type Group, type Solid, twin } from "./solids";
import { add, cross, mix, ramp, scale, toward, type Vector } from "./vector";

/** The centre of the left eyeball. */
export const eye: Vector = [0.031, 1.63, 0.0755];
export const mouth: Vector = [0, 1.5655, 0.09];
/** The height of the upper edge of the trousers. */
export const belt = 1.005;

export function bodyOf(longHair: boolean): Field {
  const left = handGroup();
  const right = { solids: left.solids.map(twin) };
  return new Field([headGroup(), eyeGroup(), hairGroup(longHair), shirtGroup(), trouserGroup(), shoeGroup(), left, right]);
}

function headGroup(): Group {
  return {
    solids: [
      cone(Bone.neck, "skin", 0, [0, 1.44, -0.035], [0, 1.57, -0.015], 0.06, 0.054),
      ellipsoid(Bone.head, "skin", 0.03, [0, 1.645, -0.012], [0.075, 0.098, 0.095]),
      ellipsoid(Bone.head, "skin", 0.03, [0, 1.608, 0.03], [0.06, 0.082, 0.064]),
      ellipsoid(Bone.head, "skin", 0.02, [0, 1.668, 0.06], [0.052, 0.03, 0.031]),
      ellipsoid(Bone.jaw, "skin", 0.02, [0, 1.536, 0.07], [0.021, 0.018, 0.018]),
      ellipsoid(Bone.head, "skin", 0.02, [0, 1.575, 0.076], [0.027, 0.022, 0.018]),
      cone(Bone.head, "skin", 0.008, [0, 1.64, 0.09], [0, 1.606, 0.108], 0.0075, 0.0105),
      ellipsoid(Bone.head, "skin", 0.006, [0, 1.57, 0.0905], [0.02, 0.005, 0.007]),
      ellipsoid(Bone.jaw, "skin", 0.006, [0, 1.561, 0.0895], [0.017, 0.0055, 0.007]),
      ...both(
        cone(Bone.jaw, "skin", 0.03, [0.046, 1.58, 0.008], [0.014, 1.538, 0.066], 0.017, 0.014),
        ellipsoid(Bone.head, "skin", 0.02, [0.04, 1.606, 0.062], [0.022, 0.018, 0.02]),
        cone(Bone.head, "skin", 0.012, [0.014, 1.65, 0.088], [0.044, 1.648, 0.07], 0.008, 0.0079),
        ellipsoid(Bone.head, "skin", 0.004, [0.078, 1.618, -0.008], [0.008, 0.03, 0.018]),
      ),
    ],
    carved: both(ellipsoid(Bone.head, "skin", 0.01, [0.031, 1.63, 0.101], [0.017, 0.01, 0.017])),
  };
}

function eyeGroup(): Group {
  return { solids: both(ellipsoid(Bone.head, "eye", 0, eye, [0.0125, 0.0125, 0.0125])) };
}

/**
 * The lower limit of hair by the angle from the front in degrees: forehead, temples, before the
 * ears, above them, nape.
 */
const hairline = [[0, 1.7], [30, 1.697], [52, 1.678], [66, 1.64], [76, 1.612], [88, 1.618], [97, 1.64], [112, 1.63], [132, 1.58], [180, 1.562]] as const;

function hairlineAt(angle: number): number {
  const next = hairline.findIndex(([degrees]) => degrees >= angle);
  if (next <= 0) {
    return hairline[0][1];
  }
  const [from, to] = [hairline[next - 1]!, hairline[next]!];
  return mix(from[1], to[1], (angle - from[0]) / (to[0] - from[0]));
}

function hairGroup(long: boolean): Group {
  const solids = [
    ellipsoid(Bone.head, "hair", 0, [0, 1.653, -0.017], [0.084, 0.105, 0.104]),
    ellipsoid(Bone.head, "hair", 0.03, [0.018, 1.712, 0.02], [0.055, 0.04, 0.068]),
    ellipsoid(Bone.head, "hair", 0.03, [0, 1.6, -0.05], [0.066, 0.07, 0.062]),
  ];
  if (long) {
    solids.push(
      ellipsoid(Bone.head, "hair", 0.03, [0, 1.6, -0.055], [0.09, 0.115, 0.068]),
      ellipsoid(Bone.head, "hair", 0.03, [0, 1.51, -0.08], [0.085, 0.075, 0.046]),
    );
  }
  return {
    solids,
    cut: (x, y, z) => {
      const angle = (Math.abs(Math.atan2(x, z + 0.01)) * 180) / Math.PI;
      const lowest = long ? mix(hairlineAt(angle), 1.46, ramp(70, 86, angle)) : hairlineAt(angle);
      // The hairline is steeper than 45° at the temples: the factor keeps the result close to a
      // distance.
      return 0.8 * (lowest - y);
    },
    soft: 0.012,
  };
}

function shirtGroup(): Group {
  const side: Vector = [1, 0, 0];
  const arm = (share: number): Vector => toward(leftElbow, leftWrist, share);
  return {
    solids: [
      cone(Bone.chest, "cloth", 0, [0, 1.35, -0.025], [0, 1.16, -0.012], 0.15, 0.14, side, 1, 0.7),
      cone(Bone.spine, "cloth", 0.03, [0, 1.16, -0.012], [0, 1.04, -0.012], 0.138, 0.134, side, 1, 0.7),
      cone(Bone.pelvis, "cloth", 0.01, [0, 1.04, -0.012], [0, 0.95, -0.012], 0.136, 0.138, side, 1, 0.68),
      cone(Bone.chest, "cloth", 0.06, [-0.13, 1.415, -0.03], [0.13, 1.415, -0.03], 0.048, 0.0479),
      cone(Bone.chest, "cloth", 0.01, [0, 1.45, -0.03], [0, 1.505, -0.034], 0.076, 0.064),
      ...both(
        cone(Bone.chest, "cloth", 0.03, [0.03, 1.465, -0.04], [0.14, 1.422, -0.035], 0.042, 0.038),
        ellipsoid(Bone.chest, "cloth", 0.05, [0.072, 1.325, 0.036], [0.072, 0.06, 0.042]),
        ellipsoid(Bone.chest, "cloth", 0.05, [0.08, 1.34, -0.09], [0.062, 0.08, 0.033]),
        ellipsoid(Bone.leftUpperArm, "cloth", 0.05, add(leftShoulder, [-0.002, -0.01, 0]), [0.05, 0.05, 0.05]),
        cone(Bone.leftUpperArm, "cloth", 0.03, toward(leftShoulder, leftElbow, 0.1), leftElbow, 0.048, 0.0395),
        cone(Bone.leftForearm, "cloth", 0.003, leftElbow, arm(0.25), 0.0395, 0.0415),
        cone(Bone.leftForearm, "cloth", 0.003, arm(0.25), arm(0.86), 0.0415, 0.0315),
        cone(Bone.leftForearm, "cloth", 0.003, arm(0.84), arm(0.93), 0.0335, 0.0332),
      ),
    ],
    carved: [cone(Bone.chest, "cloth", 0.004, [0, 1.5, 0.035], [0, 1.415, 0.095], 0.04, 0.006)],
    cut: (_x, y, z) => Math.max(0.95 - y, 0.96 * (y - 1.515) + 0.28 * (z + 0.03)),
  };
}

function trouserGroup(): Group {
  const calf = add(toward(leftKnee, leftAnkle, 0.3), [0, 0, -0.008]);
  return {
    solids: [
      cone(Bone.pelvis, "trousers", 0, [0, 1, -0.01], [0, 0.94, -0.013], 0.146, 0.152, [1, 0, 0], 1, 0.71),
      ...both(
        ellipsoid(Bone.pelvis, "trousers", 0.04, [0.066, 0.905, -0.056], [0.07, 0.08, 0.058]),
        cone(Bone.leftThigh, "trousers", 0.04, leftHip, leftKnee, 0.081, 0.057),
        cone(Bone.leftShin, "trousers", 0.004, leftKnee, calf, 0.058, 0.0579),
        cone(Bone.leftShin, "trousers", 0.004, calf, leftAnkle, 0.058, 0.05),
      ),
    ],
    cut: (_x, y) => Math.max(0.048 - y, y - belt),
  };
}

function shoeGroup(): Group {
  const heel: Vector = [0.107, 0.045, -0.05];
  return {
    solids: both(
      cone(Bone.leftFoot, "shoe", 0, heel, [0.128, 0.032, 0.13], 0.04, 0.036, [1, 0, 0], 1.08, 1),
      ellipsoid(Bone.leftFoot, "shoe", 0.03, [0.114, 0.058, 0.035], [0.036, 0.035, 0.06]),
      cone(Bone.leftFoot, "shoe", 0.02, [0.106, 0.05, -0.035], add(leftAnkle, [0, 0.01, -0.004]), 0.043, 0.04),
    ),
    cut: (_x, y) => -y,
  };
}

/** The left hand, thumb forward and palm towards the thigh. */
function handGroup(): Group {
  const forward: Vector = [0, 0, 1];
  const palm = cross(armDirection, forward);
  const at = (along: number, ahead: number, inward: number): Vector =>
    add(add(leftWrist, scale(armDirection, along)), add(scale(forward, ahead), scale(palm, inward)));
  const solids: Solid[] = [
    cone(Bone.leftForearm, "skin", 0, at(-0.06, 0, 0), at(0, 0, 0), 0.027, 0.025),
    cone(Bone.leftHand, "skin", 0.015, at(0.008, 0, 0), at(0.076, 0.002, 0.001), 0.023, 0.03, forward, 1.2, 0.46),
    cone(Bone.leftHand, "skin", 0.012, at(0.022, 0.024, 0.006), at(0.06, 0.048, 0.012), 0.015, 0.0115),
    cone(Bone.leftHand, "skin", 0.006, at(0.06, 0.048, 0.012), at(0.088, 0.055, 0.016), 0.0112, 0.0085),
  ];
  // Fingers from the index to the little one: position of the knuckle across the hand, length,
  // radius.
  for (const [across, long, radius] of [[0.028, 0.074, 0.0092], [0.0095, 0.083, 0.0095], [-0.009, 0.077, 0.0092], [-0.0265, 0.06, 0.0082]] as const) {
    const middle = at(0.084 + long * 0.52, across * 1.08, 0.004);
    solids.push(
      cone(Bone.leftHand, "skin", 0.006, at(0.078, across, 0.001), middle, radius * 1.05, radius),
      cone(Bone.leftHand, "skin", 0.003, middle, at(0.084 + long, across * 1.1, 0.018), radius, radius * 0.82),
    );
  }
  return { solids };
}
