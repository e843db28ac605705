// The points of one tile on the graphics card. Points are round, and as large as the gaps between
// them, depending on distance and number. So there are no holes, and tiles of different qualities
// match.

import {
  BufferAttribute, BufferGeometry, Color, DynamicDrawUsage, Points as ThreePoints, ShaderMaterial, Sphere, Vector3,
} from "three";
import type { Points } from "../decode/points";
import { tintOf } from "./tints";

const vertexShader = /* glsl */ `
  uniform float spacing;
  uniform float pixelsPerUnit;
  uniform float tint;
  uniform vec3 tintColor;
  attribute vec3 color;
  varying vec3 shade;
  void main() {
    vec4 seen = modelViewMatrix * vec4(position, 1.0);
    gl_Position = projectionMatrix * seen;
    float scale = length(modelMatrix[0].xyz);
    gl_PointSize = clamp(spacing * scale * pixelsPerUnit / max(-seen.z, 0.05), 1.5, 48.0);
    shade = mix(color, tintColor, tint);
  }
`;

// Colours of cameras are screen colours and are not converted.
const fragmentShader = /* glsl */ `
  varying vec3 shade;
  void main() {
    vec2 off = gl_PointCoord - vec2(0.5);
    if (dot(off, off) > 0.25) discard;
    gl_FragColor = vec4(shade, 1.0);
  }
`;

/** The share of the quality's colour if tints are shown. */
const tintShare = 0.55;

/** The typical share of a box's surface that is covered by points of a person. */
const surfaceShare = 0.45;
/**
 * The ratio of the size of discs to the mean gap. Points are at random positions and not on a grid:
 * with 1.8, one position in fourteen would remain uncovered by the points of the front side alone.
 */
const overlap = 1.8;

/**
 * Returns the size of points without holes, for points spread over the surface in a box of this
 * size.
 */
export function spacingOf(size: Vector3, count: number): number {
  const surface = 2 * (size.x * size.y + size.y * size.z + size.z * size.x) * surfaceShare;
  return overlap * Math.sqrt(surface / Math.max(count, 1));
}

export class Cloud {
  readonly object: ThreePoints<BufferGeometry, ShaderMaterial>;
  private room = 0;
  private readonly size = new Vector3();
  private readonly low = new Vector3();
  private readonly high = new Vector3();
  count = 0;

  constructor() {
    const material = new ShaderMaterial({
      vertexShader,
      fragmentShader,
      uniforms: { spacing: { value: 0.01 }, pixelsPerUnit: { value: 500 }, tint: { value: 0 }, tintColor: { value: new Color() } },
    });
    this.object = new ThreePoints(new BufferGeometry(), material);
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

  /**
   * Computes the box of the points: its size determines the size of points, and its sphere their
   * visibility.
   */
  private measure(points: Points): void {
    const { positions } = points;
    this.low.setScalar(Infinity);
    this.high.setScalar(-Infinity);
    // Every 16th point is enough for a box with an error of a few millimetres.
    for (let i = 0; i < points.count; i += 16) {
      const x = positions[3 * i]!;
      const y = positions[3 * i + 1]!;
      const z = positions[3 * i + 2]!;
      this.low.set(Math.min(this.low.x, x), Math.min(this.low.y, y), Math.min(this.low.z, z));
      this.high.set(Math.max(this.high.x, x), Math.max(this.high.y, y), Math.max(this.high.z, z));
    }
    this.size.subVectors(this.high, this.low);
    const sphere = this.object.geometry.boundingSphere ?? new Sphere();
    sphere.center.addVectors(this.low, this.high).multiplyScalar(0.5);
    // The margin covers points outside the sample.
    sphere.radius = this.size.length() * 0.55;
    this.object.geometry.boundingSphere = sphere;
    this.object.material.uniforms["spacing"]!.value = spacingOf(this.size, points.count);
  }

  clear(): void {
    this.count = 0;
    this.object.geometry.setDrawRange(0, 0);
  }

  /** Sets the number of pixels for a length of 1 at distance 1. */
  project(pixelsPerUnit: number): void {
    this.object.material.uniforms["pixelsPerUnit"]!.value = pixelsPerUnit;
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
