// The objects of a conference in one space: publications with their tiles, at their published poses
// or at a seat.

import { CanvasTexture, Group, LinearFilter, Sprite, SpriteMaterial, type Object3D } from "three";
import type { Box, Placement, Pose, Publication, TileRef } from "../signal/messages";
import type { Points } from "../decode/points";
import { Cloud } from "./cloud";
import { Seating } from "./seating";

interface Placed {
  participant: string;
  publication: Publication;
  group: Group;
  tiles: Map<number, Cloud>;
  pose: Pose | undefined;
  qualities: number;
}

export class Objects {
  readonly root = new Group();
  private readonly placed = new Map<string, Placed>();
  private readonly poses = new Map<string, Pose>();
  private readonly labels = new Map<string, Sprite>();
  private readonly seating = new Seating();
  private tinted = false;

  private static key(ref: { participant: string; publication: string }): string {
    return `${ref.participant}\n${ref.publication}`;
  }

  add(participant: string, publication: Publication): void {
    if (publication.kind !== "video") {
      return;
    }
    const key = Objects.key({ participant, publication: publication.name });
    const before = this.placed.get(key);
    if (before) {
      before.publication = publication;
      return;
    }
    const group = new Group();
    this.root.add(group);
    this.placed.set(key, { participant, publication, group, tiles: new Map(), pose: this.poses.get(key), qualities: publication.qualities.length });
    this.seating.join(participant);
    this.arrange();
  }

  remove(participant: string, publication: string): void {
    const key = Objects.key({ participant, publication });
    this.poses.delete(key);
    const object = this.placed.get(key);
    if (!object) {
      return;
    }
    for (const cloud of object.tiles.values()) {
      cloud.dispose();
    }
    this.root.remove(object.group);
    this.placed.delete(key);
    if (![...this.placed.values()].some((o) => o.participant === participant)) {
      this.seating.leave(participant);
      this.unlabel(participant);
    }
    this.arrange();
  }

  pose(pose: Pose): void {
    const key = Objects.key(pose);
    this.poses.set(key, pose);
    const object = this.placed.get(key);
    if (object) {
      object.pose = pose;
      this.arrange();
    }
  }

  show(track: TileRef, points: Points, quality: number): Cloud | undefined {
    const object = this.placed.get(Objects.key(track));
    if (!object) {
      return undefined;
    }
    let cloud = object.tiles.get(track.tile);
    if (!cloud) {
      cloud = new Cloud();
      object.tiles.set(track.tile, cloud);
      object.group.add(cloud.object);
    }
    cloud.show(points);
    cloud.tint(this.tinted, quality, object.qualities);
    return cloud;
  }

  clear(track: TileRef): void {
    this.placed.get(Objects.key(track))?.tiles.get(track.tile)?.clear();
  }

  tint(on: boolean): void {
    this.tinted = on;
    for (const { tiles } of this.placed.values()) {
      for (const cloud of tiles.values()) {
        cloud.tint(on, 0, 1);
      }
    }
  }

  project(pixelsPerUnit: number): void {
    for (const { tiles } of this.placed.values()) {
      for (const cloud of tiles.values()) {
        cloud.project(pixelsPerUnit);
      }
    }
  }

  /** Moves all objects to their places: to their published pose, or to a seat if there is none. */
  private arrange(): void {
    const seats = this.seating.seats();
    for (const { participant, group, pose } of this.placed.values()) {
      const at = pose ?? seats.get(participant);
      if (at) {
        group.position.set(...at.position);
        group.quaternion.set(...at.orientation);
        group.scale.setScalar(pose?.scale ?? 1);
      }
    }
    this.label();
  }

  /**
   * Returns the positions of objects without a pose of their own, which the server does not know
   * otherwise.
   */
  placements(): Placement[] {
    return [...this.placed.values()]
      .filter((o) => !o.pose)
      .map(({ participant, publication, group }) => ({
        participant,
        publication: publication.name,
        position: group.position.toArray(),
        orientation: group.quaternion.toArray() as [number, number, number, number],
        scale: group.scale.x,
      }));
  }

  get seated(): number {
    return this.seating.people;
  }

  /** Returns the middle and the height of a participant, for looking there. */
  focus(participant: string): Object3D | undefined {
    return [...this.placed.values()].find((o) => o.participant === participant)?.group;
  }

  private label(): void {
    for (const { participant, publication, group } of this.placed.values()) {
      const sprite = this.labels.get(participant) ?? nameplate(participant);
      this.labels.set(participant, sprite);
      this.root.add(sprite);
      const top = Math.max(...publication.tiles.map((t) => t.box.max[1]), 0.5);
      sprite.position.copy(group.position).y += Math.min(top, 2.2) * group.scale.x + 0.12;
    }
  }

  private unlabel(participant: string): void {
    const sprite = this.labels.get(participant);
    if (sprite) {
      this.root.remove(sprite);
      sprite.material.map?.dispose();
      sprite.material.dispose();
      this.labels.delete(participant);
    }
  }

  boxes(ref: { participant: string; publication: string }): Box[] {
    return this.placed.get(Objects.key(ref))?.publication.tiles.map((t) => t.box) ?? [];
  }

  /** Returns all participants with an object. */
  *people(): Generator<string> {
    const returned = new Set<string>();
    for (const { participant } of this.placed.values()) {
      if (!returned.has(participant)) {
        returned.add(participant);
        yield participant;
      }
    }
  }
}

/** Makes a small nameplate that faces the viewer. */
function nameplate(name: string): Sprite {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d")!;
  const font = "600 44px system-ui, sans-serif";
  context.font = font;
  const width = Math.ceil(Math.min(context.measureText(name).width, 640)) + 48;
  canvas.width = width;
  canvas.height = 76;
  context.font = font;
  context.fillStyle = "rgba(18, 22, 30, 0.72)";
  context.beginPath();
  context.roundRect(0, 0, width, 76, 38);
  context.fill();
  context.fillStyle = "#f4f6fa";
  context.textBaseline = "middle";
  context.fillText(name, 24, 40, width - 48);
  const map = new CanvasTexture(canvas);
  map.minFilter = LinearFilter;
  const sprite = new Sprite(new SpriteMaterial({ map, depthTest: false, transparent: true }));
  sprite.renderOrder = 1;
  sprite.scale.set((0.09 * width) / 76, 0.09, 1);
  return sprite;
}
