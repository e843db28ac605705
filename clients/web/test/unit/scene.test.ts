import { Quaternion, Vector3 } from "three";
import { describe, expect, it } from "vitest";
import { spacingOf } from "../../src/scene/cloud";
import { seat, Seating, tableRadius } from "../../src/scene/seating";

describe("seat", () => {
  it.each([1, 2, 3, 5, 12])("looks at the middle, for %i people", (people) => {
    for (let i = 0; i < people; i++) {
      const { position, orientation } = seat(i, people);
      const front = new Vector3(0, 0, 1).applyQuaternion(new Quaternion(...orientation));
      const inward = new Vector3(...position).negate().normalize();
      expect(front.distanceTo(inward)).toBeLessThan(1e-6);
      expect(Math.hypot(...position)).toBeCloseTo(tableRadius(people), 6);
    }
  });

  it("leaves everybody room", () => {
    for (let people = 2; people < 40; people++) {
      const [a, b] = [seat(0, people), seat(1, people)].map((s) => new Vector3(...s.position));
      expect(a!.distanceTo(b!)).toBeGreaterThan(1);
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
    expect(seating.people).toBe(3);
  });
});

describe("spacingOf", () => {
  it("halves for four times as many points", () => {
    const size = new Vector3(0.6, 1.8, 0.4);
    expect(spacingOf(size, 10_000) / spacingOf(size, 40_000)).toBeCloseTo(2, 6);
  });

  it("is larger than the gaps of points at random", () => {
    // 40,000 points on a person of about 2 m² are 7 mm apart.
    expect(spacingOf(new Vector3(0.6, 1.8, 0.4), 40_000)).toBeGreaterThan(0.005);
    expect(spacingOf(new Vector3(0.6, 1.8, 0.4), 40_000)).toBeLessThan(0.015);
  });
});
