// The points of one tile on the graphics card. A point is a disc as wide as the gaps between points,
// whose depth falls off towards its rim like a paraboloid. So the nearest centre has the pixel where
// discs overlap, and the discs form a surface without scales and holes.

import {
  BufferAttribute, BufferGeometry, Color, DynamicDrawUsage, Points as ThreePoints, ShaderMaterial, Sphere, Vector3,
} from "three";
import type { Points } from "../decode/points";
import { pointsLayer } from "./layers";
import { type Bounds, boundsOf, spacingOf } from "./spacing";
import { tintOf } from "./tints";

const vertexShader = /* glsl */ `
  uniform float diameter;
  uniform float pixelsPerUnit;
  uniform float tint;
  uniform vec3 tintColor;
  uniform vec2 fade;
  attribute vec3 color;
  flat varying vec4 shade;
  flat varying float sink;
  void main() {
    vec4 place = modelMatrix * vec4(position, 1.0);
    vec4 seen = viewMatrix * place;
    gl_Position = projectionMatrix * seen;
    float scale = length(modelMatrix[0].xyz);
    float away = max(-seen.z, 0.05);
    gl_PointSize = clamp(diameter * scale * pixelsPerUnit / away, 1.5, 64.0);
    // The rim of the disc is one radius behind the centre.
    vec4 rim = projectionMatrix * (seen - vec4(0.0, 0.0, 0.5 * gl_PointSize * away / pixelsPerUnit, 0.0));
    sink = 0.5 * (rim.z / rim.w - gl_Position.z / gl_Position.w);
    shade = vec4(mix(color, tintColor, tint), smoothstep(fade.x, fade.y, place.y));
  }
`;

// Colours of cameras are screen colours and are not converted.
const fragmentShader = /* glsl */ `
  flat varying vec4 shade;
  flat varying float sink;
  void main() {
    vec2 off = 2.0 * gl_PointCoord - 1.0;
    float r = dot(off, off);
    if (r > 1.0 || shade.a < 0.01) discard;
    gl_FragColor = shade;
    gl_FragDepth = gl_FragCoord.z + sink * r;
  }
`;

/** The share of the quality's colour if tints are shown. */
export const tintShare = 0.55;
/**
 * The ratio of the diameter of discs to the spacing of points. Points of clouds are at random
 * positions and not on a grid: with 2.6, one position in 200 is farther than a radius from every
 * point (e^(−π · 1.3²)).
 */
const overlap = 2.6;
/** The same for pictures with less detail: one position in 23. */
const lightOverlap = 2;
/** The spacing is measured again after this number of frames, or if the number of points changes by a tenth. */
const measuredFor = 30;

export class Cloud {
  readonly object: ThreePoints<BufferGeometry, ShaderMaterial>;
  private room = 0;
  private measured = { count: 0, frames: 0 };
  private spacing = 0.01;
  private apart = true;
  private bounds: Bounds = { min: [0, 0, 0], max: [0, 0, 0] };
  count = 0;

  constructor() {
    const material = new ShaderMaterial({
      vertexShader,
      fragmentShader,
      uniforms: {
        diameter: { value: 0.01 }, pixelsPerUnit: { value: 500 }, tint: { value: 0 }, tintColor: { value: new Color() },
        fade: { value: [-2, -1] },
      },
    });
    this.object = new ThreePoints(new BufferGeometry(), material);
    this.object.layers.set(pointsLayer);
  }

  /** Copies points to the graphics card; the caller's arrays may be reused afterwards. */
  show(points: Points): void {
    this.count = points.count;
    const geometry = this.object.geometry;
    if (points.count > this.room) {
      this.room = Math.ceil(points.count * 1.25);
      geometry.dispose();
      geometry.setAttribute("position", new BufferAttribute(new Float32Array(3 * this.room), 3).setUsage(DynamicDrawUsage));
      geometry.setAttribute("color", new BufferAttribute(new Uint8Array(3 * this.room), 3, true).setUsage(DynamicDrawUsage));
    }
    geometry.setDrawRange(0, points.count);
    if (points.count === 0) {
      return;
    }
    this.fill("position", points.positions, 3 * points.count);
    this.fill("color", points.colors, 3 * points.count);
    this.measure(points);
  }

  private fill(name: "position" | "color", from: Float32Array | Uint8Array, length: number): void {
    const attribute = this.object.geometry.getAttribute(name) as BufferAttribute;
    (attribute.array as Float32Array | Uint8Array).set(from.subarray(0, length));
    attribute.clearUpdateRanges();
    attribute.addUpdateRange(0, length);
    attribute.needsUpdate = true;
  }

  /** Measures the box of the points, which bounds their visibility, and from time to time their spacing. */
  private measure({ positions, count }: Points): void {
    // Every 16th point is enough for a box with an error of a few millimetres.
    this.bounds = boundsOf(positions, count, 16);
    const { min, max } = this.bounds;
    const sphere = this.object.geometry.boundingSphere ?? new Sphere();
    sphere.center.set((min[0] + max[0]) / 2, (min[1] + max[1]) / 2, (min[2] + max[2]) / 2);
    // The margin covers points outside the sample.
    sphere.radius = new Vector3(...max).distanceTo(new Vector3(...min)) * 0.55;
    this.object.geometry.boundingSphere = sphere;
    const { measured } = this;
    if (measured.frames++ % measuredFor === 0 || Math.abs(count / measured.count - 1) > 0.1) {
      this.measured = { count, frames: 1 };
      this.spacing = spacingOf(positions, count, this.bounds);
      this.compose(this.apart);
    }
  }

  /** The sphere around the points; null before the first. */
  get sphere(): Sphere | null {
    return this.object.geometry.boundingSphere;
  }

  /** Appends every n-th point to a list of coordinates x, y, z, of which about `most` points are added. */
  sample(into: number[], most: number): void {
    if (this.count === 0) {
      return;
    }
    const { array } = this.object.geometry.getAttribute("position");
    const stride = Math.max(1, Math.floor(this.count / most));
    for (let i = 0; i < this.count; i += stride) {
      into.push(array[3 * i]!, array[3 * i + 1]!, array[3 * i + 2]!);
    }
  }

  clear(): void {
    this.count = 0;
    this.object.geometry.setDrawRange(0, 0);
  }

  /** Sets the number of pixels for a length of 1 at distance 1. */
  project(pixelsPerUnit: number): void {
    this.object.material.uniforms["pixelsPerUnit"]!.value = pixelsPerUnit;
  }

  /** Sets the heights in the room between which points fade out. */
  fade(heights: [number, number]): void {
    this.object.material.uniforms["fade"]!.value = heights;
  }

  /** Draws the tile into an image of its own, or with the other objects of the scene and less detail. */
  compose(apart: boolean): void {
    this.apart = apart;
    this.object.layers.set(apart ? pointsLayer : 0);
    this.object.material.uniforms["diameter"]!.value = this.spacing * (apart ? overlap : lightOverlap);
  }

  /** Tints the tile by its quality, or removes the tint. */
  tint(on: boolean, quality: number, qualities: number): void {
    const uniforms = this.object.material.uniforms;
    uniforms["tint"]!.value = on ? tintShare : 0;
    if (on) {
      uniforms["tintColor"]!.value = tintOf(quality, qualities);
    }
  }

  dispose(): void {
    this.object.geometry.dispose();
    this.object.material.dispose();
  }
}
