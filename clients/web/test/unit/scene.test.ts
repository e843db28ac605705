import { Quaternion, Vector3 } from "three";
import { describe, expect, it } from "vitest";
import { bodyOf, bodyOfBoxes, facing, standOf } from "../../src/scene/body";
import { Detail } from "../../src/scene/detail";
import { type Framed, viewOf } from "../../src/scene/framing";
import { Gaze } from "../../src/scene/gaze";
import { arcSeats, Seating } from "../../src/scene/seating";
import { boundsOf, spacingOf } from "../../src/scene/spacing";
import type { Viewpoint } from "../../src/signal/messages";

describe("arcSeats", () => {
  it.each([1, 2, 3, 5, 12])("looks at a point before the middle, for %i people", (people) => {
    for (const { position, orientation } of arcSeats(Array(people).fill(1.1))) {
      const front = new Vector3(0, 0, 1).applyQuaternion(new Quaternion(...orientation));
      const to = new Vector3(0, 0, 0.8).sub(new Vector3(...position)).normalize();
      expect(front.distanceTo(to)).toBeLessThan(1e-6);
    }
  });

  it("leaves everybody room", () => {
    for (let people = 2; people < 40; people++) {
      const [a, b] = arcSeats(Array(people).fill(1.1)).map((s) => new Vector3(...s.position));
      expect(a!.distanceTo(b!)).toBeGreaterThan(0.95);
    }
  });
});

describe("Seating", () => {
  it("keeps the order of those who stay", () => {
    const seating = new Seating();
    ["ada", "grace", "linus"].forEach((who) => seating.join(who));
    seating.join("grace");
    seating.leave("ada");
    seating.leave("nobody");
    expect([...seating.seats().keys()]).toEqual(["grace", "linus"]);
  });
});

/** Returns numbers from 0 to 1 that are the same in every run. */
function random(): () => number {
  let state = 1;
  return () => ((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32);
}

/** Returns points at random positions on a sphere. */
function sphere(count: number, radius: number): Float32Array {
  const next = random();
  const positions = new Float32Array(3 * count);
  for (let i = 0; i < count; i++) {
    const y = 2 * next() - 1;
    const turn = 2 * Math.PI * next();
    positions.set([radius * Math.sqrt(1 - y * y) * Math.cos(turn), radius * y, radius * Math.sqrt(1 - y * y) * Math.sin(turn)], 3 * i);
  }
  return positions;
}

describe("spacingOf", () => {
  it.each([300, 3000, 30_000, 120_000])("is the root of the area per point, for %i points", (count) => {
    const positions = sphere(count, 0.4);
    const expected = Math.sqrt((4 * Math.PI * 0.16) / count);
    const spacing = spacingOf(positions, count, boundsOf(positions, count));
    expect(spacing / expected).toBeGreaterThan(0.8);
    expect(spacing / expected).toBeLessThan(1.25);
  });

  it("does not depend on empty space around the points", () => {
    // Two small spheres far apart have the points of one box, and half of the surface each.
    const one = sphere(10_000, 0.1);
    const both = new Float32Array(60_000);
    both.set(one);
    both.set(one.map((v, i) => v + (i % 3 === 1 ? 1.5 : 0)), 30_000);
    const single = spacingOf(one, 10_000, boundsOf(one, 10_000));
    expect(spacingOf(both, 20_000, boundsOf(both, 20_000)) / single).toBeCloseTo(1, 0);
  });

  it("has bounds for points at one position and for a single point", () => {
    for (const count of [0, 1, 5000]) {
      const positions = new Float32Array(3 * count);
      const spacing = spacingOf(positions, count, boundsOf(positions, count));
      expect(spacing).toBeGreaterThan(0);
      expect(spacing).toBeLessThanOrEqual(0.2);
    }
  });
});

describe("bodyOf", () => {
  it("ignores a few points far from the person", () => {
    const points = [...Array(999).keys()].flatMap((i) => [0.3 + 0.2 * Math.sin(i), 0.1 + (1.6 * i) / 998, -2]);
    const body = bodyOf([...points, 5, -3, 4])!;
    expect(body.low).toBeCloseTo(0.1, 1);
    expect(body.top).toBeCloseTo(1.7, 1);
    expect(Math.abs(body.middle[0] - 0.3)).toBeLessThan(0.2);
    expect(body.middle[1]).toBeCloseTo(-2, 6);
    expect(bodyOf([])).toBeUndefined();
  });
});

describe("standOf", () => {
  const body = (low: number, top: number): ReturnType<typeof bodyOfBoxes> & object => bodyOfBoxes([{ min: [-0.3, low, -0.2], max: [0.3, top, 0.2] }])!;

  it("puts the feet of a whole person on the floor", () => {
    expect(standOf(body(-1.1, 0.7))).toEqual({ lift: 1.1, fade: undefined });
  });

  it("puts the head of a half person at the height of a seated one", () => {
    const { lift, fade } = standOf(body(-0.43, 0.39));
    expect(0.39 + lift).toBeCloseTo(1.32, 6);
    expect(fade![0]).toBeCloseTo(-0.43 + lift, 6);
    expect(fade![1]).toBeGreaterThan(fade![0]);
  });
});

describe("facing", () => {
  const body = { middle: [1, -2] as [number, number], low: 0, top: 1.7, half: [0.3, 0.2] as [number, number] };

  it("is towards a camera, and +z without one or between several around", () => {
    expect(facing(body, [[0, 0, 0]])).toBeCloseTo(Math.atan2(-1, 2), 6);
    expect(facing(body, [])).toBe(0);
    expect(facing(body, [[1, 1, 0], [1, 1, -4]])).toBe(0);
  });
});

describe("viewOf", () => {
  const margins = { side: 0.92, top: 0.86, bottom: 0.74 };
  const person = (x: number, low = 0, top = 1.75): Framed => ({ middle: [x, -0.9], radius: 0.35, low, top });

  /** Returns the place of a point in the picture, in normalized device coordinates. */
  function place(view: ReturnType<typeof viewOf>, [x, y, z]: [number, number, number], high: number, wide: number): [number, number] {
    const pitch = Math.atan2(view.target[1] - view.eye[1], view.eye[2] - view.target[2]);
    const [up, ahead] = [y - view.eye[1], view.eye[2] - z];
    const depth = ahead * Math.cos(pitch) + up * Math.sin(pitch);
    return [(x - view.eye[0]) / depth / wide, (up * Math.cos(pitch) - ahead * Math.sin(pitch)) / depth / high];
  }

  it.each([[16 / 9, 1], [16 / 9, 3], [0.5, 1], [0.5, 4]])("has everybody in the picture and fills it, at a ratio of %d, for %i people", (ratio, people) => {
    const high = Math.tan((55 * Math.PI) / 360);
    const objects = [...Array(people).keys()].map((i) => person(1.1 * (i - (people - 1) / 2)));
    const view = viewOf(objects, high, high * ratio, margins);
    let [sides, tops] = [0, 0];
    for (const { middle: [x, z], radius, low, top } of objects) {
      const [, upper] = place(view, [x, top, z], high, high * ratio);
      const [side, lower] = place(view, [x + Math.sign(x - view.eye[0] || 1) * radius, low, z], high, high * ratio);
      expect(upper).toBeLessThanOrEqual(margins.top);
      expect(lower).toBeGreaterThanOrEqual(-margins.bottom);
      expect(Math.abs(side)).toBeLessThanOrEqual(margins.side);
      sides = Math.max(sides, Math.abs(side));
      tops = Math.max(tops, upper - lower);
    }
    expect(Math.max(sides / margins.side, tops / (margins.top + margins.bottom))).toBeGreaterThan(0.8);
  });

  it("looks at half a person from the height of its face", () => {
    const { eye } = viewOf([person(0, 0.6, 1.32)], 0.52, 0.92, margins);
    expect(eye[1]).toBeGreaterThan(1.1);
    expect(eye[1]).toBeLessThan(1.35);
    expect(eye[2] + 0.9).toBeLessThan(1.6);
  });

  it("has a view of an empty room", () => {
    expect(viewOf([], 0.52, 0.92, margins).eye.every(Number.isFinite)).toBe(true);
  });
});

describe("Gaze", () => {
  it("sends changes, and the places again after the session was entered", () => {
    const sent: string[] = [];
    const viewpoint = { position: [0, 1, 2], orientation: [0, 0, 0, 1], fov: 55, aspect: 1.5 } as Viewpoint;
    const gaze = new Gaze({ viewpoint: () => viewpoint, objects: { placements: () => [] } }, { look: () => sent.push("look"), arrange: () => sent.push("arrange") > 0 });
    gaze.step(1000);
    gaze.step(1100);
    expect([sent, gaze.begun]).toEqual([["arrange", "look"], true]);
    gaze.entered();
    gaze.step(1200);
    gaze.step(2100);
    expect(sent).toEqual(["arrange", "look", "arrange", "look"]);
  });
});

describe("Detail", () => {
  const after = (detail: Detail, intervals: number, interval: number): string => {
    for (let i = 0; i < intervals; i++) {
      detail.add(interval);
    }
    return detail.name;
  };

  it("becomes light if pictures take long, and stays so", () => {
    const detail = new Detail(undefined);
    expect(after(detail, 100, 33)).toBe("full");
    expect(after(detail, 60, 60)).toBe("light");
    expect(after(detail, 1000, 16)).toBe("light");
  });

  it("ignores a single long pause, and keeps a detail that was requested", () => {
    const detail = new Detail(undefined);
    after(detail, 1, 60_000);
    expect(after(detail, 59, 33)).toBe("full");
    expect(after(new Detail("full"), 60, 200)).toBe("full");
    expect(after(new Detail("light"), 60, 10)).toBe("light");
  });
});
