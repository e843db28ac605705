// A tile of a depth camera's raster on the graphics card. Each pixel is a surfel: an ellipse in space
// whose axes are the steps to its neighbours, so that it covers the part of the surface that the pixel
// has seen, from any side. The vertex shader unprojects the pixels and finds the neighbours; the
// fragment shader evaluates a Gaussian on the ellipse (Zwicker et al. 2001, "Surface splatting").

import {
  BufferGeometry, Color, CustomBlending, DataTexture, FloatType, Group, Matrix4, NearestFilter, OneFactor, type PixelFormat, Points as ThreePoints, RedFormat, RGBAFormat,
  RGFormat, ShaderMaterial, Sphere, type TextureDataType, UnsignedByteType, Vector2, Vector3, Vector4,
} from "three";
import type { Camera, Raster } from "../decode/rgbd/raster";
import { nodeEdge, type Rays } from "../decode/rgbd/rays";
import { tintShare } from "./cloud";
import { blendLayer, coverLayer } from "./layers";
import { tintOf } from "./tints";

/** Pixels whose depths differ by more than this share belong to different surfaces. */
const sameSurface = 0.02;
/** Surfels this far behind the nearest surface are blended with it, in metres. */
const blended = 0.012;
/** The standard deviation of a surfel's weight in pixels of the raster. */
const sigma = 0.5;
/**
 * The extents of ellipses in standard deviations. Covering ellipses touch across the corners of
 * pixels, 0.71 pixels from the middle. Blended ones end where the weight is a twentieth.
 */
const coverExtent = 1.5;
const blendExtent = 2.45;

const vertexShader = /* glsl */ `
  uniform highp sampler2D depths;
  uniform highp sampler2D depthsBefore;
  uniform highp sampler2D rays;
  uniform sampler2D colors;
  uniform sampler2D colorsBefore;
  uniform float share;
  uniform ivec2 size;
  uniform vec4 lens;
  uniform vec3 grid;
  uniform vec2 origin;
  uniform bool bent;
  uniform bool white;
  uniform float extent;
  uniform float pixelsPerUnit;
  uniform float push;
  uniform float tint;
  uniform vec3 tintColor;
  uniform vec2 fade;
  flat varying vec4 shade;
  flat varying vec3 conic;
  flat varying vec3 slope;

  // The ray of a pixel of the raster, at depth 1.
  vec2 rayOf(ivec2 pixel) {
    vec2 at = grid.xy + vec2(pixel) * grid.z;
    if (!bent) return (at - lens.zw) / lens.xy;
    vec2 node = at / ${nodeEdge.toFixed(1)} - origin;
    ivec2 low = ivec2(floor(node));
    vec2 part = node - vec2(low);
    return mix(mix(texelFetch(rays, low, 0).xy, texelFetch(rays, low + ivec2(1, 0), 0).xy, part.x),
      mix(texelFetch(rays, low + ivec2(0, 1), 0).xy, texelFetch(rays, low + ivec2(1, 1), 0).xy, part.x), part.y);
  }

  vec3 placeOf(ivec2 pixel, float depth) {
    vec2 ray = rayOf(pixel);
    return vec3(ray.x * depth, -ray.y * depth, -depth);
  }

  // The depth of a pixel. part is the share of the newest frame, which is 1 if the pixel has seen another
  // surface in the frame before.
  float depthOf(ivec2 pixel, out float part) {
    float depth = texelFetch(depths, pixel, 0).r;
    part = 1.0;
    if (share >= 1.0 || depth <= 0.0) return depth;
    float before = texelFetch(depthsBefore, pixel, 0).r;
    if (abs(depth - before) > ${sameSurface} * depth) return depth;
    part = share;
    return mix(before, depth, share);
  }

  // Adds the step to a neighbour on the same surface. Returns 1 if there is one.
  float toward(ivec2 pixel, ivec2 by, vec3 place, inout vec3 sum) {
    ivec2 other = pixel + by;
    if (any(lessThan(other, ivec2(0))) || any(greaterThanEqual(other, size))) return 0.0;
    float part;
    float depth = depthOf(other, part);
    if (depth <= 0.0 || abs(depth + place.z) > ${sameSurface} * -place.z) return 0.0;
    sum += float(by.x + by.y) * (placeOf(other, depth) - place);
    return 1.0;
  }

  void main() {
    gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
    gl_PointSize = 1.0;
    ivec2 pixel = ivec2(gl_VertexID % size.x, gl_VertexID / size.x);
    float newest;
    float depth = depthOf(pixel, newest);
    if (depth <= 0.0) return;
    vec3 place = placeOf(pixel, depth);
    vec3 right = vec3(0.0);
    vec3 down = vec3(0.0);
    float across = toward(pixel, ivec2(1, 0), place, right) + toward(pixel, ivec2(-1, 0), place, right);
    float along = toward(pixel, ivec2(0, 1), place, down) + toward(pixel, ivec2(0, -1), place, down);
    // A pixel without neighbours is between two surfaces.
    if (across + along < 1.0) return;
    // Without neighbours in a direction, the surface is taken to face the camera.
    right = across > 0.0 ? right / across : placeOf(pixel + ivec2(1, 0), depth) - place;
    down = along > 0.0 ? down / along : placeOf(pixel + ivec2(0, 1), depth) - place;

    vec4 room = modelMatrix * vec4(place, 1.0);
    vec4 seen = viewMatrix * room;
    if (seen.z > -0.05) return;
    mat3 turn = mat3(viewMatrix) * mat3(modelMatrix);
    right = turn * right;
    down = turn * down;
    // The steps in pixels of the picture.
    float perUnit = pixelsPerUnit / -seen.z;
    vec2 a = perUnit * (right.xy - seen.xy * right.z / seen.z);
    vec2 b = perUnit * (down.xy - seen.xy * down.z / seen.z);
    const float variance = ${(sigma * sigma).toFixed(4)};
    // Surfels are at least as wide as a pixel of the picture.
    vec3 spread = variance * vec3(a.x * a.x + b.x * b.x, a.x * a.y + b.x * b.y, a.y * a.y + b.y * b.y) + vec3(0.2, 0.0, 0.2);
    conic = vec3(spread.z, -spread.y, spread.x) / (spread.x * spread.z - spread.y * spread.y);
    // The plane of the ellipse: the change of z with pixels of the picture.
    vec2 rise = variance * (a * right.z + b * down.z);
    slope.xy = vec2(conic.x * rise.x + conic.y * rise.y, conic.y * rise.x + conic.z * rise.y);
    gl_Position = projectionMatrix * seen;
    gl_PointSize = min(2.0 * extent * sqrt(max(spread.x, spread.z)) + 1.0, 128.0);
    slope.z = gl_PointSize;
    float rate = 0.5 * projectionMatrix[3][2] / (seen.z * seen.z);
    slope.xy *= rate;
    gl_Position.z -= 2.0 * push * rate * gl_Position.w;
    vec3 color = white ? vec3(1.0) : texelFetch(colors, pixel, 0).rgb;
    if (newest < 1.0 && !white) color = mix(texelFetch(colorsBefore, pixel, 0).rgb, color, newest);
    // Pixels at the rim of a surface are partly of another one. The sum of weights decides on opacity
    // up to a fifth of its value inside a surface: the cube makes the fading even.
    float sure = min((across + along) / 3.0, 1.0);
    float part = smoothstep(fade.x, fade.y, room.y);
    shade = vec4(mix(color, tintColor, tint), sure * part * part * part);
  }
`;

const fragmentShader = /* glsl */ `
  uniform float extent;
  flat varying vec4 shade;
  flat varying vec3 conic;
  flat varying vec3 slope;
  void main() {
    vec2 off = (gl_PointCoord - 0.5) * vec2(slope.z, -slope.z);
    float far = conic.x * off.x * off.x + 2.0 * conic.y * off.x * off.y + conic.z * off.y * off.y;
    if (far > extent * extent || shade.a < 0.01) discard;
    gl_FragDepth = gl_FragCoord.z + dot(slope.xy, off);
  #ifdef BLEND
    float weight = shade.a * exp(-0.5 * far);
    gl_FragColor = vec4(weight * shade.rgb, weight);
  #else
    gl_FragColor = vec4(shade.rgb, 1.0);
  #endif
  }
`;

export class Surfels {
  readonly object = new Group();
  private readonly cover: ThreePoints<BufferGeometry, ShaderMaterial>;
  private readonly blend: ThreePoints<BufferGeometry, ShaderMaterial>;
  private depths: DataTexture | undefined;
  private rays: DataTexture | undefined;
  private bentBy: Rays | undefined;
  private colors: DataTexture | undefined;
  /** The textures of the frame before. */
  private readonly before: { depths: DataTexture | undefined; colors: DataTexture | undefined } = { depths: undefined, colors: undefined };
  private raster: Omit<Raster, "depths" | "colors"> | undefined;
  count = 0;

  constructor() {
    const shared = {
      depths: { value: null }, depthsBefore: { value: null }, rays: { value: null }, colors: { value: null }, colorsBefore: { value: null }, share: { value: 1 }, size: { value: new Vector2() }, lens: { value: new Vector4() },
      grid: { value: new Vector3() }, origin: { value: new Vector2() }, bent: { value: false }, white: { value: true }, pixelsPerUnit: { value: 500 }, tint: { value: 0 },
      tintColor: { value: new Color() }, fade: { value: [-1e4, -1e3] },
    };
    const geometry = new BufferGeometry();
    geometry.boundingSphere = new Sphere();
    const part = (layer: number, own: object, options: object): ThreePoints<BufferGeometry, ShaderMaterial> => {
      const points = new ThreePoints(geometry, new ShaderMaterial({ vertexShader, fragmentShader, uniforms: { ...shared, ...own }, ...options }));
      points.layers.set(layer);
      this.object.add(points);
      return points;
    };
    this.cover = part(coverLayer, { extent: { value: coverExtent }, push: { value: blended } }, { colorWrite: false });
    this.blend = part(blendLayer, { extent: { value: blendExtent }, push: { value: 0 } }, {
      defines: { BLEND: "" }, blending: CustomBlending, blendSrc: OneFactor, blendDst: OneFactor, depthWrite: false, transparent: true,
    });
    this.object.matrixAutoUpdate = false;
  }

  private get uniforms(): ShaderMaterial["uniforms"] {
    return this.cover.material.uniforms;
  }

  /**
   * Copies depths and colours for the graphics card. The picture changes to them in `advance`.
   * @param rays are the rays of the lens if it is distorted
   */
  show(raster: Raster, rays: Rays | undefined): void {
    const { camera, columns, rows, depths, colors, reduction, left, top } = raster;
    const { uniforms, before } = this;
    const blends = this.count > 0 && this.raster !== undefined && sameGrid(this.raster, raster) && (colors === undefined) === uniforms["white"]!.value;
    this.count = raster.points;
    this.raster = raster;
    this.cover.geometry.setDrawRange(0, columns * rows);
    [this.depths, before.depths] = [filled(before.depths, columns, rows, depths, RedFormat), this.depths];
    uniforms["depths"]!.value = this.depths;
    uniforms["depthsBefore"]!.value = before.depths ?? null;
    if (colors) {
      [this.colors, before.colors] = [filled(before.colors, columns, rows, colors, RGBAFormat), this.colors];
      uniforms["colors"]!.value = this.colors;
      uniforms["colorsBefore"]!.value = before.colors ?? null;
    }
    uniforms["share"]!.value = blends ? 0 : 1;
    uniforms["white"]!.value = colors === undefined;
    const scale = 2 ** reduction;
    uniforms["size"]!.value.set(columns, rows);
    uniforms["grid"]!.value.set((left + 0.5) * scale - 0.5, (top + 0.5) * scale - 0.5, scale);
    uniforms["lens"]!.value.set(camera.fx, camera.fy, camera.cx, camera.cy);
    uniforms["bent"]!.value = rays !== undefined;
    if (rays && rays !== this.bentBy) {
      this.bentBy = rays;
      this.bend(rays);
      uniforms["origin"]!.value.set(rays.left, rays.top);
    }
    this.place(camera);
    this.bound(raster);
  }

  /**
   * Advances the change from the frame before to the newest one.
   * @param share is the passed time as a share of the interval of frames
   */
  advance(share: number): void {
    const { uniforms } = this;
    uniforms["share"]!.value = Math.min(uniforms["share"]!.value + share, 1);
  }

  private bend({ nodes, columns }: Rays): void {
    const rows = nodes.length / 2 / columns;
    this.rays?.dispose();
    this.rays = dataTexture(Float32Array.from(nodes), columns, rows, RGFormat, FloatType);
    this.rays.needsUpdate = true;
    this.uniforms["rays"]!.value = this.rays;
  }

  private place({ pose: { rotation: r, translation: t } }: Camera): void {
    this.object.matrix.copy(new Matrix4(r[0]!, r[1]!, r[2]!, t[0]!, r[3]!, r[4]!, r[5]!, t[1]!, r[6]!, r[7]!, r[8]!, t[2]!, 0, 0, 0, 1));
    this.object.matrixWorldNeedsUpdate = true;
  }

  /** Computes a sphere around the pixels, from their range of depths and the corners of the tile. */
  private bound({ depths, columns, rows, camera, reduction, left, top }: Raster): void {
    let [near, far] = [Infinity, 0];
    for (let i = 0; i < columns * rows; i += 7) {
      const depth = depths[i]!;
      if (depth > 0) {
        near = Math.min(near, depth);
        far = Math.max(far, depth);
      }
    }
    const scale = 2 ** reduction;
    const x = [left, left + columns].map((v) => (v * scale - camera.cx) / camera.fx);
    const y = [top, top + rows].map((v) => (v * scale - camera.cy) / camera.fy);
    const corners = [near, far].flatMap((d) => x.flatMap((u) => y.map((v) => new Vector3(u * d, -v * d, -d))));
    const sphere = this.cover.geometry.boundingSphere!;
    sphere.setFromPoints(corners);
    // The margin covers depths outside the sample, and rays bent outwards.
    sphere.radius = sphere.radius * 1.1 + 0.02;
  }

  /** The sphere around the pixels, in coordinates of the object. */
  get sphere(): Sphere {
    return this.cover.geometry.boundingSphere!;
  }

  /** The position of the camera in the publication's coordinates. */
  get camera(): readonly number[] | undefined {
    return this.raster?.camera.pose.translation;
  }

  /** Appends about `most` pixels to a list of coordinates x, y, z of the publication. Distortions are ignored. */
  sample(into: number[], most: number): void {
    const { raster, depths } = this;
    if (!raster || !depths || this.count === 0) {
      return;
    }
    const { camera, columns, rows, reduction, left, top } = raster;
    const data = depths.image.data as Float32Array;
    const scale = 2 ** reduction;
    const stride = Math.max(1, Math.floor((columns * rows) / most / 2));
    const point = new Vector3();
    for (let i = 0; i < columns * rows; i += stride) {
      const depth = data[i]!;
      if (depth > 0) {
        const u = (left + (i % columns) + 0.5) * scale - 0.5;
        const v = (top + Math.floor(i / columns) + 0.5) * scale - 0.5;
        point.set(((u - camera.cx) / camera.fx) * depth, -((v - camera.cy) / camera.fy) * depth, -depth).applyMatrix4(this.object.matrix);
        into.push(point.x, point.y, point.z);
      }
    }
  }

  clear(): void {
    this.count = 0;
    this.cover.geometry.setDrawRange(0, 0);
  }

  project(pixelsPerUnit: number): void {
    this.uniforms["pixelsPerUnit"]!.value = pixelsPerUnit;
  }

  fade(heights: [number, number]): void {
    this.uniforms["fade"]!.value = heights;
  }

  /** Blends the surfels in an image of their own, or draws opaque ellipses with the scene. */
  compose(apart: boolean): void {
    this.cover.layers.set(apart ? coverLayer : 0);
    this.blend.visible = apart;
    this.cover.material.colorWrite = !apart;
    this.uniforms["push"]!.value = apart ? blended : 0;
  }

  tint(on: boolean, quality: number, qualities: number): void {
    this.uniforms["tint"]!.value = on ? tintShare : 0;
    if (on) {
      this.uniforms["tintColor"]!.value.copy(tintOf(quality, qualities));
    }
  }

  dispose(): void {
    this.cover.geometry.dispose();
    this.cover.material.dispose();
    this.blend.material.dispose();
    for (const texture of [this.depths, this.before.depths, this.rays, this.colors, this.before.colors]) {
      texture?.dispose();
    }
  }
}

type Grid = Pick<Raster, "reduction" | "left" | "top" | "columns" | "rows">;

/** Reports whether the pixels of two rasters are the same pixels of the camera. */
function sameGrid(a: Grid, b: Grid): boolean {
  return a.reduction === b.reduction && a.left === b.left && a.top === b.top && a.columns === b.columns && a.rows === b.rows;
}

/** Copies values, one or four for each pixel, into a texture. A texture of another size is replaced. */
function filled(
  texture: DataTexture | undefined, columns: number, rows: number, values: Float32Array | Uint8Array, format: typeof RedFormat | typeof RGBAFormat,
): DataTexture {
  const image = texture?.image as { width: number; height: number } | undefined;
  const numbers = columns * rows * (format === RedFormat ? 1 : 4);
  let into = texture;
  if (image?.width !== columns || image.height !== rows) {
    texture?.dispose();
    into = values instanceof Float32Array ? dataTexture(new Float32Array(numbers), columns, rows, format, FloatType) : dataTexture(new Uint8Array(numbers), columns, rows, format, UnsignedByteType);
  }
  (into!.image.data as Float32Array | Uint8Array).set(values.subarray(0, numbers));
  into!.needsUpdate = true;
  return into!;
}

function dataTexture(
  data: Float32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>, columns: number, rows: number, format: PixelFormat, type: TextureDataType,
): DataTexture {
  const texture = new DataTexture(data, columns, rows, format, type);
  texture.minFilter = texture.magFilter = NearestFilter;
  return texture;
}
