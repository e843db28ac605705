// Rounded shapes with smooth transitions, defined by distances (Quilez, "distance functions").

import { add, cross, length, mirrored, scale, sub, unit, type Vector } from "./vector";
import { Bone } from "./skeleton";

export type Material = "skin" | "eye" | "hair" | "cloth" | "trousers" | "shoe";

/**
 * An ellipsoid, or the hull of two balls, possibly flattened. In its own frame, the first axis is
 * the long axis of a hull.
 */
export interface Solid {
  bone: Bone;
  material: Material;
  /** The width in metres of the transition to the previous solids of the group. */
  blend: number;
  origin: Vector;
  axes: readonly [Vector, Vector, Vector];
  /** The inverse radii of an ellipsoid; for a hull, the inverse factors on its width. */
  factors: Vector;
  thinnest: number;
  widest: number;
  length: number;
  /** The radii of a hull; r0 is 0 for an ellipsoid. */
  r0: number;
  r1: number;
}

const upright: readonly [Vector, Vector, Vector] = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];

export function ellipsoid(bone: Bone, material: Material, blend: number, origin: Vector, radii: Vector): Solid {
  return {
    bone, material, blend, origin, axes: upright, factors: [1 / radii[0], 1 / radii[1], 1 / radii[2]],
    thinnest: Math.min(...radii), widest: Math.max(...radii), length: 0, r0: 0, r1: 0,
  };
}

/**
 * Returns a hull of two balls, stretched by wide towards side, and by thin at right angles to that.
 */
export function cone(bone: Bone, material: Material, blend: number, from: Vector, to: Vector, r0: number, r1: number, side?: Vector, wide = 1, thin = 1): Solid {
  const along = sub(to, from);
  const first = unit(along);
  const aside: Vector = side ?? (Math.abs(first[0]) > 0.9 ? [0, 0, 1] : [1, 0, 0]);
  const third = unit(cross(first, aside));
  return {
    bone, material, blend, origin: from, axes: [first, cross(third, first), third], factors: [1, 1 / wide, 1 / thin],
    thinnest: Math.min(wide, thin), widest: Math.max(wide, thin), length: length(along), r0, r1,
  };
}

/** Adds the mirrored copies of solids of the left side. */
export function both(...left: Solid[]): Solid[] {
  return left.concat(left.map(twin));
}

export function twin(s: Solid): Solid {
  const axes = s.axes.map(mirrored) as unknown as [Vector, Vector, Vector];
  return { ...s, bone: s.bone >= Bone.leftUpperArm ? s.bone + Bone.rightUpperArm - Bone.leftUpperArm : s.bone, origin: mirrored(s.origin), axes };
}

/**
 * Returns the distance of a position from a solid: negative inside, exact at the surface, a lower
 * bound for flattened hulls.
 */
function distanceTo(s: Solid, x: number, y: number, z: number): number {
  const dx = x - s.origin[0];
  const dy = y - s.origin[1];
  const dz = z - s.origin[2];
  const a = s.axes[0];
  const b = s.axes[1];
  const c = s.axes[2];
  const f = s.factors[0];
  const g = s.factors[1];
  const h = s.factors[2];
  const u = (a[0] * dx + a[1] * dy + a[2] * dz) * f;
  const v = (b[0] * dx + b[1] * dy + b[2] * dz) * g;
  const w = (c[0] * dx + c[1] * dy + c[2] * dz) * h;
  if (s.r0 === 0) {
    const k0 = Math.sqrt(u * u + v * v + w * w);
    const k1 = Math.sqrt(u * u * f * f + v * v * g * g + w * w * h * h);
    return k1 === 0 ? -s.thinnest : (k0 * (k0 - 1)) / k1;
  }
  return hull(u, Math.sqrt(v * v + w * w), s.length, s.r0, s.r1) * s.thinnest;
}

/**
 * Returns the distance from the hull of a ball of radius r0 at 0 and one of radius r1 at length,
 * for a position given along and across the axis.
 */
function hull(along: number, across: number, size: number, r0: number, r1: number): number {
  const slope = (r0 - r1) / size;
  const rise = Math.sqrt(1 - slope * slope);
  const k = along * rise - across * slope;
  if (k < 0) {
    return Math.sqrt(along * along + across * across) - r0;
  }
  if (k > rise * size) {
    return Math.sqrt((along - size) * (along - size) + across * across) - r1;
  }
  return across * rise + along * slope - r0;
}

/** Returns the smooth minimum: it differs from the minimum only if both are closer than k. */
function smoothMin(a: number, b: number, k: number): number {
  if (k <= 0 || Math.abs(a - b) >= k) {
    return Math.min(a, b);
  }
  const h = k - Math.abs(a - b);
  return Math.min(a, b) - (h * h) / (4 * k);
}

/** Solids with smooth transitions: the skin of a head, a shirt, a hand. */
export interface Group {
  solids: Solid[];
  /** Solids to subtract, with their blend. */
  carved?: Solid[];
  /** The part outside of this function (positive) is also removed. */
  cut?: (x: number, y: number, z: number) => number;
  soft?: number;
}

/** A whole body, or its part near a position. */
export class Field {
  /** The nearest solid in the last call of distance. */
  nearest: Solid | undefined;

  constructor(private readonly groups: readonly Group[]) {}

  distance(x: number, y: number, z: number): number {
    let best = Infinity;
    this.nearest = undefined;
    for (const group of this.groups) {
      const distance = groupDistance(group, x, y, z);
      if (distance < best) {
        best = distance;
        this.nearest = owner;
      }
    }
    return best;
  }

  /** Returns the gradient of the distance, from four positions around (a tetrahedron). */
  gradient([x, y, z]: Vector): Vector {
    const step = 5e-4;
    let sum: Vector = [0, 0, 0];
    for (const corner of [[1, -1, -1], [-1, -1, 1], [-1, 1, -1], [1, 1, 1]] as const) {
      const distance = this.distance(x + corner[0] * step, y + corner[1] * step, z + corner[2] * step);
      sum = add(sum, scale(corner, distance));
    }
    return scale(sum, 1 / (4 * step));
  }

  /** Returns the field within a ball, without solids that have no influence there. */
  near(centre: Vector, radius: number): Field {
    const kept: Group[] = [];
    for (const group of this.groups) {
      let blend = 0;
      for (const s of group.solids) {
        blend = Math.max(blend, s.blend);
      }
      const solids = group.solids.filter((s) => reaches(s, centre, radius + blend));
      if (solids.length > 0) {
        kept.push({ ...group, solids, carved: (group.carved ?? []).filter((s) => reaches(s, centre, radius + blend)) });
      }
    }
    return new Field(kept);
  }
}

/**
 * Reports whether a solid has a distance below reach somewhere: a flattened hull reports less than
 * its true distance, by up to that factor.
 */
function reaches(s: Solid, centre: Vector, reach: number): boolean {
  const half = s.length / 2;
  const first = s.axes[0];
  const x = s.origin[0] + first[0] * half - centre[0];
  const y = s.origin[1] + first[1] * half - centre[1];
  const z = s.origin[2] + first[2] * half - centre[2];
  const extent = s.r0 === 0 ? s.widest : half + Math.max(s.r0, s.r1) * Math.max(s.widest, 1);
  const limit = extent + reach / (s.r0 > 0 ? Math.min(s.thinnest, 1) : 1);
  return x * x + y * y + z * z < limit * limit;
}

/**
 * The nearest solid found by groupDistance. The function is called a hundred times per point, so it
 * returns only a number.
 */
let owner: Solid | undefined;

function groupDistance(group: Group, x: number, y: number, z: number): number {
  let distance = Infinity;
  let nearest = Infinity;
  for (const s of group.solids) {
    const own = distanceTo(s, x, y, z);
    if (own < nearest) {
      nearest = own;
      owner = s;
    }
    distance = smoothMin(distance, own, s.blend);
  }
  if (group.carved) {
    for (const s of group.carved) {
      distance = -smoothMin(-distance, distanceTo(s, x, y, z), s.blend);
    }
  }
  if (group.cut) {
    distance = -smoothMin(-distance, -group.cut(x, y, z), group.soft ?? 0);
  }
  return distance;
}
