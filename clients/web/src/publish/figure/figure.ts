// A generated, animated person for pages without a camera. The looks depend on a seed only, so that
// they are the same in every worker and after every reload.

import type { Points } from "../../decode/points";
import type { Box } from "../../signal/messages";
import { bodyOf } from "./body";
import { Looks } from "./looks";
import { Motions, paletteSize } from "./motion";
import { attach } from "./skeleton";
import { surfaceOf } from "./surface";
import { add, random, scale } from "./vector";

/**
 * The box contains every point of every figure at all times. The person stands on y = 0 in its
 * middle and faces +z.
 */
export const figureBox: Box = { min: [-0.8, -0.02, -0.8], max: [0.8, 1.8, 0.8] };

export class Figure {
  private readonly rest: Float32Array;
  private readonly colors: Uint8Array;
  private readonly entries: Uint16Array;
  private readonly eyes: number[] = [];
  private readonly lid: readonly [number, number, number];
  private readonly palette = new Float32Array(paletteSize);
  private readonly motions: Motions;

  /** Samples a person's surface once, in about ten microseconds per point. */
  constructor(
    readonly points: number,
    seed: number,
  ) {
    const looks = new Looks(seed);
    const samples = surfaceOf(bodyOf(looks.longHair), points, random(seed));
    this.rest = new Float32Array(3 * points);
    this.colors = new Uint8Array(3 * points);
    this.entries = new Uint16Array(points);
    this.lid = looks.lid;
    this.motions = new Motions(seed);
    samples.forEach((s, i) => {
      this.rest.set(add(s.position, scale(s.normal, looks.relief(s))), 3 * i);
      this.colors.set(looks.paint(s, i), 3 * i);
      this.entries[i] = attach(s.bone, s.position) * 12;
      if (s.material === "eye") {
        this.eyes.push(i);
      }
    });
  }

  /**
   * Computes the person at a time in seconds, into arrays with room for all points. Any first part
   * of the points is spread over the whole body.
   */
  at(t: number, into: Points): void {
    const { rest, entries, palette } = this;
    const { positions } = into;
    this.motions.fill(palette, t);
    into.count = this.points;
    into.colors.set(this.colors);
    for (let i = 0; i < this.points; i++) {
      const m = entries[i]!;
      const x = rest[3 * i]!;
      const y = rest[3 * i + 1]!;
      const z = rest[3 * i + 2]!;
      positions[3 * i] = palette[m]! * x + palette[m + 1]! * y + palette[m + 2]! * z + palette[m + 9]!;
      positions[3 * i + 1] = palette[m + 3]! * x + palette[m + 4]! * y + palette[m + 5]! * z + palette[m + 10]!;
      positions[3 * i + 2] = palette[m + 6]! * x + palette[m + 7]! * y + palette[m + 8]! * z + palette[m + 11]!;
    }
    if (this.motions.blinks(t)) {
      for (const i of this.eyes) {
        into.colors.set(this.lid, 3 * i);
      }
    }
  }
}

/** Returns a seed for a name: people with different names look different. */
export function seedOf(name: string): number {
  let seed = 2166136261;
  for (const c of name) {
    seed = Math.imul(seed ^ c.codePointAt(0)!, 16777619);
  }
  return seed >>> 0;
}
