// The objects of a conference in one space: publications with their tiles, at their published poses
// or at a seat, and the panels of webcams and screens beside their participants.

import { Group, Quaternion, Sprite, SpriteMaterial, Vector3 } from "three";
import type { Box, Placement, Pose, Publication, TileRef } from "../signal/messages";
import type { Points } from "../decode/points";
import { isPicture, pictureSource } from "../media/picture";
import { Cloud } from "./cloud";
import { textTexture } from "./label";
import { Panel } from "./panel";
import { heightOf, panelShape, type Row, rowOf } from "./rows";
import { type Seat, Seating } from "./seating";

interface Placed {
  participant: string;
  publication: Publication;
  group: Group;
  tiles: Map<number, Cloud>;
  /** The panel of a picture, which has no clouds. */
  panel: Panel | undefined;
  pose: Pose | undefined;
  qualities: number;
}

/** A panel of a participant's picture. */
export interface PlacedPanel {
  participant: string;
  publication: string;
  panel: Panel;
}

const up = new Vector3(0, 1, 0);
/** The distance of the viewer beyond the least distance, in metres. */
const margin = 0.15;
/** The least distance from the middle of an arc, whose radius is at least as much again. */
const leastDistance = 0.5;
/** Half the width of a body, in metres. */
const bodySide = 0.4;

export class Objects {
  readonly root = new Group();
  private readonly placed = new Map<string, Placed>();
  private readonly poses = new Map<string, Pose>();
  private readonly labels = new Map<string, Sprite>();
  private readonly seating = new Seating();
  private tinted = false;
  /** The position to which panels are turned: the viewer's seat. */
  private readonly eye = new Vector3(0, 0, 3);
  /** Panels are smoothed at a distance, which renderers in software are too slow for. */
  mipmaps = true;

  private static key(ref: { participant: string; publication: string }): string {
    return `${ref.participant}\n${ref.publication}`;
  }

  add(participant: string, publication: Publication): void {
    if (publication.kind !== "video") {
      return;
    }
    const key = Objects.key({ participant, publication: publication.name });
    const before = this.placed.get(key);
    if (before && (before.panel !== undefined) === isPicture(publication)) {
      before.publication = publication;
      return;
    }
    if (before) {
      this.remove(participant, publication.name);
    }
    const group = new Group();
    this.root.add(group);
    const panel = isPicture(publication) ? this.panel(participant, publication) : undefined;
    if (panel) {
      group.add(panel.object);
    }
    this.placed.set(key, { participant, publication, group, tiles: new Map(), panel, pose: this.poses.get(key), qualities: publication.qualities.length });
    this.seat(participant);
    this.arrange();
  }

  /** Makes the panel of a picture. */
  private panel(participant: string, publication: Publication): Panel {
    const { middle, size } = panelShape(publication);
    const panel = new Panel(pictureSource(publication) === "screen" ? `${participant}’s screen` : participant, size.width, size.height, this.mipmaps);
    panel.object.position.set(...middle);
    return panel;
  }

  /** Gives a participant a place that is wide enough for body and panels. */
  private seat(participant: string): void {
    const { width, panels } = this.row(participant);
    this.seating.join(participant, width, panels.size > 0);
  }

  /** Returns the row of a participant, without panels at poses of their own. */
  private row(participant: string): Row {
    const own = [...this.placed.values()].filter((o) => o.participant === participant);
    return rowOf(own.some((o) => !o.panel), own.filter((o) => o.panel && !o.pose).map((o) => o.publication));
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
    object.panel?.dispose();
    this.root.remove(object.group);
    this.placed.delete(key);
    const left = [...this.placed.values()].filter((o) => o.participant === participant);
    if (left.length === 0) {
      this.seating.leave(participant);
    } else {
      this.seat(participant);
    }
    if (left.every((o) => o.panel)) {
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
      this.seat(object.participant);
      this.arrange();
    }
  }

  show(track: TileRef, points: Points, quality: number): Cloud | undefined {
    const object = this.placed.get(Objects.key(track));
    if (!object || object.panel) {
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

  /** Shows a webcam or a screen; undefined if it is no longer received. */
  picture(of: TileRef, track: MediaStreamTrack | undefined): void {
    this.placed.get(Objects.key(of))?.panel?.show(track);
  }

  clear(track: TileRef): void {
    const object = this.placed.get(Objects.key(track));
    object?.panel?.clear();
    object?.tiles.get(track.tile)?.clear();
  }

  /** Sets the quality of a picture, by which its frame is tinted. */
  sent(track: TileRef, quality: number | undefined): void {
    const object = this.placed.get(Objects.key(track));
    object?.panel?.tint(this.tinted ? quality : undefined, object.qualities);
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
    for (const { participant, panel, group, pose } of this.placed.values()) {
      const at = pose ?? seats.get(participant);
      if (at && (pose || !panel)) {
        group.position.set(...at.position);
        group.quaternion.set(...at.orientation);
        group.scale.setScalar(pose?.scale ?? 1);
      }
    }
    for (const participant of this.seating.seats().keys()) {
      this.line(participant, seats.get(participant)!);
    }
    this.label();
  }

  /**
   * Places a participant's panels in a row with the body: beside a body at a pose of its own,
   * otherwise with the whole row in the middle of the seat.
   */
  private line(participant: string, seat: Seat): void {
    const own = [...this.placed.values()].filter((o) => o.participant === participant);
    const posed = own.find((o) => !o.panel && o.pose)?.pose;
    const row = this.row(participant);
    const along = new Vector3(1, 0, 0).applyQuaternion(new Quaternion(...(posed ?? seat).orientation)).setY(0);
    if (along.lengthSq() < 1e-6) {
      along.set(1, 0, 0);
    }
    along.normalize();
    const middle = new Vector3(...(posed ?? seat).position);
    if (posed) {
      middle.addScaledVector(along, -row.body);
    }
    for (const { publication, panel, pose, group } of own) {
      if (pose) {
        continue;
      }
      if (!panel) {
        group.position.copy(middle).addScaledVector(along, row.body);
        continue;
      }
      const shape = panelShape(publication);
      const at = middle.clone().addScaledVector(along, row.panels.get(publication.name)!);
      at.y += heightOf(publication);
      group.quaternion.setFromAxisAngle(up, Math.atan2(this.eye.x - at.x, this.eye.z - at.z));
      group.scale.setScalar(shape.scale);
      group.position.copy(at).sub(new Vector3(...shape.middle).multiplyScalar(shape.scale).applyQuaternion(group.quaternion));
    }
  }

  /** Turns the panels to the viewer's seat. */
  face(eye: Vector3): void {
    this.eye.copy(eye);
    this.arrange();
  }

  /** Returns the panels in the order in which they are enlarged: by participant, then along the row. */
  panels(): PlacedPanel[] {
    return [...this.seating.seats().keys()].flatMap((who) => {
      const row = this.row(who);
      const own = [...this.placed.values()].filter((o) => o.participant === who && o.panel);
      const at = (o: Placed): number => row.panels.get(o.publication.name) ?? 0;
      return own.sort((a, b) => at(a) - at(b)).map((o) => ({ participant: who, publication: o.publication.name, panel: o.panel! }));
    });
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

  /** The coordinate z of the point that the viewer looks at from the seat: the middle of the table, or of the arc. */
  get middle(): number {
    return this.seating.arched ? -this.seating.radius : 0;
  }

  /**
   * Returns the distance of the viewer's seat from the middle at which everyone is seen, in metres.
   * @param high is half the height of the view at a distance of 1, and wide half the width
   */
  distance(high: number, wide: number): number {
    // People stand: 2 m for them and their names fit the height.
    const standing = 1.05 / high;
    if (!this.seating.arched) {
      const { radius } = this.seating;
      return Math.max(radius, standing + margin, (radius + 0.4) / wide + margin);
    }
    return [...this.placed.values()].reduce((most, { panel, group: { position, scale } }) => {
      const side = panel ? (scale.x * panel.width) / 2 : bodySide;
      return Math.max(most, position.z + margin + Math.max(standing, (Math.abs(position.x) + side) / wide));
    }, leastDistance);
  }

  /** Returns the place of a participant: that of the body, or of a panel without a body. */
  focus(participant: string): Vector3 | undefined {
    const own = [...this.placed.values()].filter((o) => o.participant === participant);
    const { panel, group } = own.find((o) => !o.panel) ?? own[0] ?? {};
    return panel ? panel.object.getWorldPosition(new Vector3()) : group?.position;
  }

  private label(): void {
    for (const { participant, publication, panel, group } of this.placed.values()) {
      if (panel) {
        continue;
      }
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
  const { map, ratio } = textTexture(name, true);
  const sprite = new Sprite(new SpriteMaterial({ map, depthTest: false, transparent: true }));
  sprite.renderOrder = 1;
  sprite.scale.set(0.09 * ratio, 0.09, 1);
  return sprite;
}
