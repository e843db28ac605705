// The objects of a conference in one space: publications with their tiles, at their published poses
// or at a seat, and the panels of webcams and screens beside their participants.

import { Group, type Mesh, type PerspectiveCamera, type PlaneGeometry, Quaternion, type ShaderMaterial, Vector3 } from "three";
import type { Box, Placement, Pose, Publication, TileRef } from "../signal/messages";
import type { Points } from "../decode/points";
import { isPicture, pictureSource } from "../media/picture";
import { type Body, bodyOf, bodyOfBoxes, facing, standOf } from "./body";
import type { Raster } from "../decode/rgbd/raster";
import { RayTables } from "../decode/rgbd/rays";
import { Cloud } from "./cloud";
import type { Part } from "./composition";
import { shadow } from "./floor";
import type { Framed } from "./framing";
import { Nameplate } from "./label";
import { Panel } from "./panel";
import { heightOf, panelShape, type Row, rowOf } from "./rows";
import { type Seat, Seating } from "./seating";
import { Surfels } from "./surfels";

interface Placed {
  participant: string;
  publication: Publication;
  group: Group;
  tiles: Map<number, Cloud | Surfels>;
  /** The body, by the boxes of the tiles until it is measured from all tiles' points. */
  body: Body;
  measured: boolean;
  /** The number of frames before the measurement. */
  shown: number;
  shadow: Mesh<PlaneGeometry, ShaderMaterial> | undefined;
  /** The place to which the group moves; undefined before the first. */
  goal: { position: Vector3; turn: Quaternion; scale: number } | undefined;
  /** The panel of a picture, which has no clouds. */
  panel: Panel | undefined;
  pose: Pose | undefined;
}

/** A panel of a participant's picture. */
export interface PlacedPanel {
  participant: string;
  publication: string;
  panel: Panel;
}

const up = new Vector3(0, 1, 0);
/** A body whose publication has no boxes. */
const usualBody: Body = { middle: [0, 0], low: 0, top: 1.75, half: [0.35, 0.25] };
/** The number of points from which a body is measured. */
const samples = 3000;
/** A body is measured after this number of frames even if tiles are missing. */
const measuredAfter = 60;
/** The time constant with which objects follow their poses, in seconds: two frames of a pose at 30 per second. */
const following = 0.06;
/** The time in which the picture of a raster changes to the next frame is the interval of frames, and at most this, in seconds. */
const longestChange = 0.05;
/** The usual number of frames per second. */
const usualRate = 30;
/** An object farther from its pose than this, in metres, is moved at once. */
const leap = 3;
/** The height of faces, as a share of the height of a body. */
const faceShare = 0.86;
/** The height of shadows above the floor, so that neither hides the other, in metres. */
const shadowHeight = 0.004;

export class Objects {
  readonly root = new Group();
  private readonly placed = new Map<string, Placed>();
  private readonly poses = new Map<string, Pose>();
  private readonly labels = new Map<string, Nameplate>();
  /** The objects changed since `frame` was called: the first view may be another one. */
  private moved = true;
  private apart = true;
  private blends = true;
  private readonly seating = new Seating();
  private readonly rays = new RayTables();
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
    this.placed.set(key, {
      participant, publication, group, tiles: new Map(), body: bodyOfBoxes(boxesOf(publication)) ?? usualBody, measured: false, shown: 0,
      shadow: panel ? undefined : this.shadow(), goal: undefined, panel, pose: this.poses.get(key),
    });
    this.seat(participant);
    this.arrange();
  }

  private shadow(): Mesh<PlaneGeometry, ShaderMaterial> {
    const mesh = shadow();
    this.root.add(mesh);
    return mesh;
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
    this.seating.join(participant, this.row(participant).width);
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
    if (object.shadow) {
      this.root.remove(object.shadow);
      object.shadow.geometry.dispose();
      object.shadow.material.dispose();
    }
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

  /**
   * Shows a frame of a tile. The caller's arrays may be reused afterwards. A raster's points are drawn
   * from the raster.
   */
  show(track: TileRef, points: Points, quality: number, raster?: Raster): void {
    const object = this.placed.get(Objects.key(track));
    if (!object || object.panel) {
      return;
    }
    if (raster) {
      const tile = this.tile(object, track.tile, Surfels);
      tile.show(raster, raster.camera.distortion && this.rays.of(raster));
      tile.tint(this.tinted, quality, object.publication.qualities.length);
    } else {
      const tile = this.tile(object, track.tile, Cloud);
      tile.show(points);
      tile.tint(this.tinted, quality, object.publication.qualities.length);
    }
    if (!object.measured) {
      this.measure(object);
    }
  }

  /** Returns a tile of a kind. It replaces one of the other kind. */
  private tile<T extends Cloud | Surfels>(object: Placed, number: number, kind: new () => T): T {
    const before = object.tiles.get(number);
    if (before instanceof kind) {
      return before;
    }
    if (before) {
      object.group.remove(before.object);
      before.dispose();
    }
    const tile = new kind();
    tile.compose(this.apart && (this.blends || tile instanceof Cloud));
    object.tiles.set(number, tile);
    object.group.add(tile.object);
    this.fade(object);
    return tile;
  }

  /**
   * Measures a body once all its tiles have arrived, or many frames: tiles out of sight do not arrive.
   * Boxes have room for all frames, and outliers.
   */
  private measure(object: Placed): void {
    const tiles = [...object.tiles.values()].filter((tile) => tile.count > 0);
    if (tiles.length === 0 || (object.tiles.size < object.publication.tiles.length && ++object.shown < measuredAfter)) {
      return;
    }
    const points: number[] = [];
    for (const tile of tiles) {
      tile.sample(points, samples / tiles.length);
    }
    object.body = bodyOf(points) ?? object.body;
    // A body that is not measured is placed at once.
    this.arrange();
    object.measured = true;
  }

  /** Fades the lower end of a part of a person, unless the publisher has placed it. */
  private fade({ body, pose, tiles }: Placed): void {
    const { fade } = standOf(body);
    for (const cloud of tiles.values()) {
      cloud.fade(fade && !pose ? fade : [-1e4, -1e3]);
    }
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
    object?.panel?.tint(this.tinted ? quality : undefined, object.publication.qualities.length);
  }

  tint(on: boolean): void {
    this.tinted = on;
    for (const { tiles } of this.placed.values()) {
      for (const cloud of tiles.values()) {
        cloud.tint(on, 0, 1);
      }
    }
  }

  /** Sets the number of pixels for a length of 1 at distance 1. */
  project(pixelsPerUnit: number): void {
    for (const { tiles } of this.placed.values()) {
      for (const cloud of tiles.values()) {
        cloud.project(pixelsPerUnit);
      }
    }
  }

  /** Reports whether there are points to draw. */
  get filled(): boolean {
    return [...this.placed.values()].some(({ tiles }) => [...tiles.values()].some((tile) => tile.count > 0));
  }

  /** Draws people into images of their own, or with the scene: lighter, without lighting and blending. Surfels are drawn with the scene if they cannot be blended. */
  compose(apart: boolean, blends: boolean): void {
    this.apart = apart;
    this.blends = blends;
    for (const { tiles } of this.placed.values()) {
      for (const tile of tiles.values()) {
        tile.compose(apart && (blends || tile instanceof Cloud));
      }
    }
  }

  /** Returns the part of the picture with tiles of a kind; undefined if there are none in it. */
  part(camera: PerspectiveCamera, kind: typeof Cloud | typeof Surfels): Part | undefined {
    let part: Part | undefined;
    const at = new Vector3();
    const toEye = camera.matrixWorldInverse;
    const { elements } = camera.projectionMatrix;
    const [wide, high, aside, above] = [elements[0]!, elements[5]!, elements[8]!, elements[9]!];
    for (const { tiles } of this.placed.values()) {
      for (const tile of tiles.values()) {
        const { sphere, object } = tile;
        if (!(tile instanceof kind) || tile.count === 0 || !sphere) {
          continue;
        }
        const radius = sphere.radius * object.matrixWorld.getMaxScaleOnAxis() * 1.15 + 0.02;
        at.copy(sphere.center).applyMatrix4(object.matrixWorld).applyMatrix4(toEye);
        if (at.z > radius) {
          continue;
        }
        const near = -at.z - radius;
        if (near < camera.near) {
          return [-1, -1, 1, 1];
        }
        const far = -at.z + radius;
        const low = (v: number, scale: number): number => (v < 0 ? v / near : v / far) * scale;
        const bounds: Part = [
          low(at.x - radius, wide) - aside, low(at.y - radius, high) - above, -low(-at.x - radius, wide) - aside, -low(-at.y - radius, high) - above,
        ];
        part = part ? [Math.min(part[0], bounds[0]), Math.min(part[1], bounds[1]), Math.max(part[2], bounds[2]), Math.max(part[3], bounds[3])] : bounds;
      }
    }
    const clipped = part?.map((v) => Math.min(Math.max(v, -1), 1)) as Part | undefined;
    return clipped && clipped[0] < clipped[2] && clipped[1] < clipped[3] ? clipped : undefined;
  }

  /** Moves all objects towards their places: to their published pose, or to a seat if there is none. */
  private arrange(): void {
    this.moved = true;
    const seats = this.seating.seats();
    for (const [participant, seat] of seats) {
      this.line(participant, seat);
    }
    for (const object of this.placed.values()) {
      const { participant, panel, pose } = object;
      if (pose) {
        this.send(object, new Vector3(...pose.position), new Quaternion(...pose.orientation), pose.scale ?? 1);
      } else if (panel) {
        continue;
      } else if (seats.has(participant)) {
        this.stand(object, seats.get(participant)!);
      }
      this.fade(object);
    }
    this.label();
  }

  /** Gives an object a place, to which it moves in `step`; the first place at once. */
  private send(object: Placed, position: Vector3, turn: Quaternion, scale: number): void {
    const first = !object.goal || !object.measured || object.goal.position.distanceTo(position) > leap;
    object.goal = { position, turn, scale };
    if (first) {
      this.settle(object, 1);
    }
  }

  private settle({ group, goal }: Placed, share: number): void {
    if (goal) {
      group.position.lerp(goal.position, share);
      group.quaternion.slerp(goal.turn, share);
      group.scale.setScalar(group.scale.x + (goal.scale - group.scale.x) * share);
    }
  }

  /** Places a body without a pose: on the floor at its seat, with its front to the others. */
  private stand(object: Placed, seat: Seat): void {
    const { participant, body } = object;
    const along = new Vector3(1, 0, 0).applyQuaternion(new Quaternion(...seat.orientation));
    const turn = new Quaternion().setFromAxisAngle(up, -facing(body, camerasOf(object))).premultiply(new Quaternion(...seat.orientation));
    const middle = new Vector3(body.middle[0], -standOf(body).lift, body.middle[1]).applyQuaternion(turn);
    this.send(object, new Vector3(...seat.position).addScaledVector(along, this.row(participant).body).sub(middle), turn, 1);
  }

  /**
   * Advances by the given seconds: objects move smoothly between the poses that arrive, rasters change
   * smoothly from frame to frame, and names fade with the distance from the eye.
   */
  step(seconds: number, eye: Vector3): void {
    const share = 1 - Math.exp(-seconds / following);
    for (const object of this.placed.values()) {
      this.settle(object, share);
      const change = Math.min(1 / (object.publication.frame_rate || usualRate), longestChange);
      for (const tile of object.tiles.values()) {
        if (tile instanceof Surfels) {
          tile.advance(seconds / change);
        }
      }
      if (object.shadow) {
        const { group, body, shadow } = object;
        const scale = group.scale.x;
        shadow.position.copy(this.inRoom(object, 0)).setY(shadowHeight);
        shadow.scale.set(scale * (1.5 * body.half[0] + 0.12), 1, scale * (1.5 * body.half[1] + 0.12));
        shadow.rotation.y = 2 * Math.atan2(group.quaternion.y, group.quaternion.w);
        const above = Math.max(0, group.position.y + scale * body.low);
        shadow.material.uniforms["strength"]!.value = 0.55 / (1 + 2 * above);
        shadow.visible = [...object.tiles.values()].some((tile) => tile.count > 0);
      }
    }
    for (const [participant, plate] of this.labels) {
      const object = this.bodyOf(participant);
      if (object) {
        plate.object.position.copy(this.inRoom(object, 1));
        plate.step(seconds, plate.object.position.distanceTo(eye));
      }
    }
  }

  /** Returns the point of a body at a share of its height, in the room. */
  private inRoom({ group, body }: Placed, share: number): Vector3 {
    const y = body.low + share * (body.top - body.low);
    return new Vector3(body.middle[0], y, body.middle[1]).multiply(group.scale).applyQuaternion(group.quaternion).add(group.position);
  }

  private bodyOf(participant: string): Placed | undefined {
    return [...this.placed.values()].find((o) => o.participant === participant && !o.panel);
  }

  /** Shows at a participant's name how loud the participant speaks, 0 to 1. */
  speak(participant: string, level: number): void {
    this.labels.get(participant)?.speak(level);
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
      .map(({ participant, publication, group, goal }) => ({
        participant,
        publication: publication.name,
        position: (goal?.position ?? group.position).toArray(),
        orientation: (goal?.turn ?? group.quaternion).toArray() as [number, number, number, number],
        scale: goal?.scale ?? group.scale.x,
      }));
  }

  /** Returns the objects that the first view has in the picture, and whether they changed since the last call. */
  framed(): { objects: Framed[]; moved: boolean } {
    const { moved } = this;
    this.moved = false;
    const objects = [...this.placed.values()].map((object): Framed => {
      const { panel, body, goal, group } = object;
      if (panel) {
        const at = panel.object.getWorldPosition(new Vector3());
        const [width, height] = [group.scale.x * panel.width, group.scale.x * panel.height];
        return { middle: [at.x, at.z], radius: width / 2, low: at.y - height / 2, top: at.y + height / 2 };
      }
      const scale = goal?.scale ?? 1;
      const base = goal?.position.y ?? 0;
      const at = new Vector3(body.middle[0], 0, body.middle[1]).multiplyScalar(scale).applyQuaternion(goal?.turn ?? group.quaternion).add(goal?.position ?? group.position);
      const fade = object.pose ? undefined : standOf(body).fade;
      return {
        middle: [at.x, at.z], radius: scale * Math.max(...body.half), low: fade ? fade[1] : base + scale * body.low, top: base + scale * body.top,
      };
    });
    return { objects, moved };
  }

  /** Returns the face of a participant's body, or the middle of a panel without a body. */
  focus(participant: string): Vector3 | undefined {
    const object = this.bodyOf(participant) ?? [...this.placed.values()].find((o) => o.participant === participant);
    return object?.panel ? object.panel.object.getWorldPosition(new Vector3()) : object && this.inRoom(object, faceShare);
  }

  private label(): void {
    for (const { participant, panel } of this.placed.values()) {
      if (!panel && !this.labels.has(participant)) {
        const plate = new Nameplate(participant);
        this.labels.set(participant, plate);
        this.root.add(plate.object);
      }
    }
  }

  private unlabel(participant: string): void {
    const plate = this.labels.get(participant);
    if (plate) {
      this.root.remove(plate.object);
      plate.dispose();
      this.labels.delete(participant);
    }
  }

  boxes(ref: { participant: string; publication: string }): Box[] {
    const object = this.placed.get(Objects.key(ref));
    return object ? boxesOf(object.publication) : [];
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

function boxesOf(publication: Publication): Box[] {
  return publication.tiles.map((t) => t.box);
}

/**
 * Returns the positions of the cameras that captured an object, in its coordinates. Rasters have them.
 * Points that are all behind the origin, z < 0, are in the coordinates of a camera (docs/capture.md).
 */
function camerasOf({ tiles, publication }: Placed): (readonly number[])[] {
  const cameras = [...tiles.values()].flatMap((tile) => (tile instanceof Surfels && tile.camera ? [tile.camera] : []));
  if (cameras.length > 0) {
    return cameras;
  }
  const boxes = boxesOf(publication);
  return boxes.length > 0 && boxes.every((box) => box.max[2] < 0) ? [[0, 0, 0]] : [];
}
