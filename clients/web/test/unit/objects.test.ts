import { type Group, type ShaderMaterial, type Sprite, Vector3 } from "three";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { viewOf } from "../../src/scene/framing";
import { Nameplate } from "../../src/scene/label";
import { Objects } from "../../src/scene/objects";
import type { Points } from "../../src/decode/points";
import type { Publication } from "../../src/signal/messages";

/** The parts of a canvas that nameplates use. */
const context = { font: "", fillStyle: "", textBaseline: "", measureText: (text: string) => ({ width: 20 * text.length }), beginPath() {}, roundRect() {}, fill() {}, fillText() {} };

beforeEach(() => vi.stubGlobal("document", { createElement: () => ({ width: 0, height: 0, getContext: () => context }) }));
afterEach(() => vi.unstubAllGlobals());

const frame = 1 / 60;

describe("Nameplate", () => {
  const parts = (plate: Nameplate): { rim: Sprite; name: Sprite } => {
    const [rim, name] = plate.object.children as [Sprite, Sprite];
    return { rim, name };
  };

  it("fades with the distance from the eye, and is gone far away", () => {
    const plate = new Nameplate("ada");
    const opacities = [1, 4.9, 6, 8, 10.9, 12].map((distance) => {
      plate.step(frame, distance);
      return plate.object.visible ? parts(plate).name.material.opacity : 0;
    });
    expect(opacities.slice(0, 2)).toEqual([1, 1]);
    expect(opacities[5]).toBe(0);
    for (let i = 2; i < opacities.length; i++) {
      expect(opacities[i]!).toBeLessThan(opacities[i - 1]!);
    }
  });

  it("is never larger than at arm's length", () => {
    const plate = new Nameplate("ada");
    const angles = [0.4, 0.8, 1.4, 3].map((distance) => {
      plate.step(frame, distance);
      return parts(plate).name.scale.y / distance;
    });
    expect(angles[1]! / angles[0]!).toBeCloseTo(1, 6);
    expect(angles[2]! / angles[0]!).toBeCloseTo(1, 6);
    expect(angles[3]!).toBeLessThan(angles[0]!);
  });

  it("has a rim while the person speaks, which fades between syllables", () => {
    const plate = new Nameplate("ada");
    plate.step(frame, 2);
    expect(parts(plate).rim.visible).toBe(false);
    plate.speak(0.6);
    plate.step(frame, 2);
    const { rim, name } = parts(plate);
    expect([rim.visible, rim.material.opacity]).toEqual([true, 1]);
    expect(rim.scale.y).toBeGreaterThan(name.scale.y);
    plate.step(0.3, 2);
    expect(rim.visible).toBe(true);
    plate.step(2, 2);
    expect(rim.visible).toBe(false);
  });
});

const body: Publication = {
  name: "body", kind: "video", mode: "alternatives", codec: { mime_type: "video/x-points" }, qualities: [{ bitrate_bps: 1 }],
  tiles: [{ box: { min: [-0.4, -0.5, -1.4], max: [0.4, 0.5, -0.8] } }],
} as unknown as Publication;

/** Returns a column of points, in the coordinates of a camera that sees its upper end or all of it. */
function column(low: number, top: number): Points {
  const count = 2000;
  const positions = new Float32Array(3 * count);
  for (let i = 0; i < count; i++) {
    positions.set([0.1 + 0.2 * Math.sin(i), low + ((top - low) * i) / (count - 1), -1.1 + 0.1 * Math.cos(i)], 3 * i);
  }
  return { count, positions, colors: new Uint8Array(3 * count) };
}

const track = { participant: "ada", publication: "body", tile: 0 };

function room(points: Points): { objects: Objects; group: Group } {
  const objects = new Objects();
  objects.add("ada", body);
  objects.show(track, points, 0);
  return { objects, group: objects.root.children[0] as Group };
}

/** Returns the heights of the points in the room. */
function heights(group: Group, { positions }: Points): [number, number] {
  const at = (i: number): number => new Vector3(...positions.subarray(3 * i, 3 * i + 3)).applyQuaternion(group.quaternion).add(group.position).y;
  return [at(0), at(positions.length / 3 - 1)];
}

describe("Objects", () => {
  it("stands a person that a camera sees on the floor, with the front to the others, in the first view", () => {
    const points = column(-1.2, 0.5);
    const { objects, group } = room(points);
    const [feet, top] = heights(group, points);
    expect(Math.abs(feet)).toBeLessThan(0.02);
    expect(top).toBeCloseTo(1.7, 1);
    // The camera, the origin of the points, is between the person and the viewer.
    expect(group.position.z).toBeGreaterThan(-0.5);
    const { objects: framed } = objects.framed();
    const { eye, target } = viewOf(framed, 0.52, 0.92, { side: 0.92, top: 0.86, bottom: 0.74 });
    expect(framed[0]!.middle[0]).toBeCloseTo(eye[0], 1);
    expect(eye[2]).toBeGreaterThan(framed[0]!.middle[1] + 0.9);
    expect(target[1]).toBeGreaterThan(0.5);
  });

  it("seats the upper part of a person, with the head at the height of a seated one", () => {
    const points = column(-0.45, 0.4);
    const { group } = room(points);
    expect(heights(group, points)[1]).toBeCloseTo(1.32, 1);
  });

  it("moves smoothly between poses that arrive less often than pictures are drawn", () => {
    const { objects, group } = room(column(-1.2, 0.5));
    const pose = (x: number): void => objects.pose({ participant: "ada", publication: "body", position: [x, 0, 0], orientation: [0, 0, 0, 1] });
    pose(0);
    for (let i = 0; i < 60; i++) {
      objects.step(frame, new Vector3(0, 1.5, 3));
    }
    // 1.5 m/s: poses at 30 per second are 50 mm apart, pictures at 60 per second 25 mm.
    const steps: number[] = [];
    for (let i = 1; i <= 60; i++) {
      if (i % 2 === 1) {
        pose((0.05 * (i + 1)) / 2);
      }
      const before = group.position.x;
      objects.step(frame, new Vector3(0, 1.5, 3));
      steps.push(group.position.x - before);
    }
    for (const step of steps.slice(20)) {
      expect(step).toBeGreaterThan(0.018);
      expect(step).toBeLessThan(0.032);
    }
    for (let i = 0; i < 30; i++) {
      objects.step(frame, new Vector3(0, 1.5, 3));
    }
    expect(group.position.x).toBeCloseTo(1.5, 2);
    pose(20);
    expect(group.position.x).toBe(20);
  });

  it("changes rasters smoothly to the next frame, unless their pixels are others", () => {
    const objects = new Objects();
    objects.add("ada", body);
    const show = (reduction: number): void => objects.show(track, { count: 16, positions: new Float32Array(0), colors: new Uint8Array(0) }, 0, {
      camera: { width: 32, height: 32, fx: 30, fy: 30, cx: 15.5, cy: 15.5, distortion: undefined, pose: { rotation: [1, 0, 0, 0, 1, 0, 0, 0, 1], translation: [0, 0, 0] } },
      id: 0, reduction, left: 0, top: 0, columns: 4, rows: 4, points: 16, depths: new Float32Array(16).fill(1), step: 0.001, growing: false, colors: new Uint8Array(64),
    });
    const share = (): number => {
      const [tile] = (objects.root.children[0] as Group).children as [Group];
      return (tile.children[0] as unknown as { material: ShaderMaterial }).material.uniforms["share"]!.value;
    };
    const shares: number[] = [];
    for (const reduction of [0, 0, 1]) {
      show(reduction);
      shares.push(share());
      for (let i = 0; i < 2; i++) {
        objects.step(frame, new Vector3(0, 1.5, 3));
        shares.push(share());
      }
    }
    [1, 1, 1, 0, 0.5, 1, 1, 1, 1].forEach((want, i) => expect(shares[i]).toBeCloseTo(want, 6));
  });

  it("tells the server the places of people without a pose only", () => {
    const { objects } = room(column(-1.2, 0.5));
    expect(objects.placements()).toHaveLength(1);
    objects.pose({ participant: "ada", publication: "body", position: [0, 0, 0], orientation: [0, 0, 0, 1] });
    expect(objects.placements()).toHaveLength(0);
  });
});
