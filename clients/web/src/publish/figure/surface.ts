// Points on the surface of a body in random order: any first part of them is spread over all of it.

import { Bone } from "./skeleton";
import type { Sample } from "./looks";
import type { Field } from "./solids";
import { add, length, scale, sub, type Vector } from "./vector";

/** The box around the body at rest, with a margin. */
const region: readonly [Vector, Vector] = [[-0.7, -0.02, -0.3], [0.7, 1.8, 0.3]];
/** The surface is searched in cubes of two sizes; each large cube is divided into small ones. */
const largeCube = 0.05;
const smallCube = 0.0125;
/** The maximum distances of a candidate from the surface before and after its projection. */
const shell = 0.006;
const astray = 0.001;
/** The radius around a point within which other surfaces shade it. */
const lightReach = 0.035;

/** A small cube that may contain a part of the surface. */
interface Cell {
  corner: Vector;
  /** The solids that shape the surface in it, computed for the first candidate. */
  near: Field | undefined;
  /** The solids that shade it. */
  around: Field;
}

function cellsOf(body: Field): Cell[] {
  const cells: Cell[] = [];
  visitCubes(body, region[0], region[1], largeCube, (corner) => {
    const around = nearCube(body, corner, largeCube, lightReach);
    visitCubes(around, corner, add(corner, [largeCube, largeCube, largeCube]), smallCube, (inner) => cells.push({ corner: inner, near: undefined, around }));
  });
  return cells;
}

/** Returns the field in a cube, and around it up to reach. */
function nearCube(body: Field, corner: Vector, size: number, reach: number): Field {
  return body.near(add(corner, [size / 2, size / 2, size / 2]), (size * Math.sqrt(3)) / 2 + shell + reach);
}

/** Visits the cubes of a box that may contain a part of the surface. */
function visitCubes(body: Field, from: Vector, to: Vector, size: number, visit: (corner: Vector) => void): void {
  const halfDiagonal = (size * Math.sqrt(3)) / 2;
  const count = (axis: 0 | 1 | 2): number => Math.ceil((to[axis] - from[axis]) / size - 1e-9);
  for (let i = 0; i < count(0); i++) {
    for (let j = 0; j < count(1); j++) {
      for (let k = 0; k < count(2); k++) {
        const corner = add(from, [i * size, j * size, k * size]);
        const middle = add(corner, [size / 2, size / 2, size / 2]);
        if (Math.abs(body.distance(middle[0], middle[1], middle[2])) < halfDiagonal + shell) {
          visit(corner);
        }
      }
    }
  }
}

/** Returns the points per area of a part of the body: faces and hands get more attention. */
function density(bone: Bone): number {
  switch (bone) {
    case Bone.head:
    case Bone.jaw:
    case Bone.neck:
      return 1;
    case Bone.leftHand:
    case Bone.rightHand:
      return 0.8;
    default:
      return 0.5;
  }
}

/** Spreads points over a body. */
export function surfaceOf(body: Field, points: number, random: () => number): Sample[] {
  const cells = cellsOf(body);
  const samples: Sample[] = [];
  while (samples.length < points) {
    const cell = cells[Math.floor(random() * cells.length)]!;
    const sample = candidate(cell, random);
    if (sample) {
      samples.push(sample);
    }
  }
  return samples;
}

/** Projects a random position in the cell onto the surface, if it is near enough. */
function candidate(cell: Cell, random: () => number): Sample | undefined {
  const { corner, around } = cell;
  const near = (cell.near ??= nearCube(around, corner, smallCube, 0));
  let p = add(corner, [smallCube * random(), smallCube * random(), smallCube * random()]);
  let distance = near.distance(p[0], p[1], p[2]);
  if (!near.nearest || Math.abs(distance) > shell || random() > density(near.nearest.bone)) {
    return undefined;
  }
  const gradient = near.gradient(p);
  const steep = length(gradient);
  // If distances are lower bounds, their gradient is below 1 by the same factor.
  if (steep < 0.1 || Math.abs(distance) > shell * steep) {
    return undefined;
  }
  for (let step = 0; step < 2; step++) {
    p = sub(p, scale(gradient, distance / (steep * steep)));
    distance = near.distance(p[0], p[1], p[2]);
  }
  const solid = near.nearest;
  if (!solid || Math.abs(distance) > astray) {
    return undefined;
  }
  const normal = scale(gradient, 1 / steep);
  // The distance of the surface from a position above is compared with that of a plane.
  const above = 0.8 * lightReach;
  const raised = add(p, scale(normal, above));
  const openness = Math.min(Math.max(around.distance(raised[0], raised[1], raised[2]) / above, 0), 1);
  return { position: p, normal, openness, bone: solid.bone, material: solid.material };
}
