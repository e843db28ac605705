// Draws people into images of their own, and these images into the scene.
//
// Points have eye-dome lighting (Boucheny 2009): a pixel is darker if pixels around it are nearer, so
// that edges and folds are visible without normals. Surfels are blended: the first pass finds the
// nearest surface of each pixel, the second adds the weighted colours of the surfels near it (Botsch
// et al. 2005, "High-quality surface splatting on today's GPUs").

import {
  AddEquation, Color, CustomBlending, DepthTexture, HalfFloatType, Mesh, NearestFilter, OneFactor, OneMinusSrcAlphaFactor, type PerspectiveCamera,
  PlaneGeometry, RGBAFormat, type Scene, ShaderMaterial, SrcAlphaFactor, UnsignedByteType, UnsignedIntType, Vector2, Vector4, type WebGLRenderer,
  WebGLRenderTarget,
} from "three";
import { blendLayer, coverLayer, pointsLayer } from "./layers";

/** Draws a part of the picture, given by its corners in normalized device coordinates. */
const wholeVertexShader = /* glsl */ `
  uniform vec4 part;
  varying vec2 at;
  void main() {
    vec2 corner = mix(part.xy, part.zw, 0.5 * position.xy + 0.5);
    at = 0.5 * corner + 0.5;
    gl_Position = vec4(corner, 0.0, 1.0);
  }
`;

/**
 * The distances of the two rings of neighbours in pixels of a picture of 720 lines: the inner ring
 * draws contours, the outer ring shades folds.
 */
const rings = [1.2, 4.5];

const pointsFragmentShader = /* glsl */ `
  uniform sampler2D colors;
  uniform sampler2D depths;
  uniform vec2 range;
  uniform vec2 inner;
  uniform vec2 outer;
  varying vec2 at;
  // The logarithm of the distance.
  float far(float depth) {
    return log2(range.x * range.y / (range.y - depth * (range.y - range.x)));
  }
  float nearer(float here, vec2 off) {
    // A nearer pixel beyond 20 % of the distance is another object, and darkens no further.
    return clamp(here - far(texture2D(depths, at + off).r) - 0.006, 0.0, 0.25);
  }
  void main() {
    float depth = texture2D(depths, at).r;
    if (depth >= 1.0) discard;
    vec4 color = texture2D(colors, at);
    float here = far(depth);
    float near = nearer(here, vec2(inner.x, 0.0)) + nearer(here, vec2(-inner.x, 0.0)) + nearer(here, vec2(0.0, inner.y)) + nearer(here, vec2(0.0, -inner.y));
    float wide = nearer(here, 0.7 * outer) + nearer(here, -0.7 * outer) + nearer(here, vec2(0.7, -0.7) * outer) + nearer(here, vec2(-0.7, 0.7) * outer);
    float light = exp2(-(2.2 * near + 1.6 * wide));
    gl_FragColor = vec4(color.rgb * max(light, 0.35), color.a);
    gl_FragDepth = depth;
  }
`;

/**
 * The sum of weights from which a pixel is opaque: half the sum inside a surface, which is 2πσ² with
 * σ = 0.5 pixels.
 */
const fullWeight = 0.8;
/** The weight of a single surfel at the end of its covering ellipse, 1.5 standard deviations from its middle. */
const rimWeight = 0.32;

const surfelsFragmentShader = /* glsl */ `
  const float fullWeight = ${fullWeight.toFixed(2)};
  const float rimWeight = ${rimWeight.toFixed(2)};
  uniform sampler2D colors;
  uniform sampler2D depths;
  uniform vec2 inner;
  varying vec2 at;
  void main() {
    vec4 sum = texture2D(colors, at);
    if (sum.a < 0.02) discard;
    float depth = texture2D(depths, at).r;
    vec4 beside = vec4(texture2D(depths, at + vec2(inner.x, 0.0)).r, texture2D(depths, at - vec2(inner.x, 0.0)).r,
      texture2D(depths, at + vec2(0.0, inner.y)).r, texture2D(depths, at - vec2(0.0, inner.y)).r);
    vec4 empty = step(1.0, beside);
    float alpha = min(sum.a / fullWeight, 1.0);
    if (depth >= 1.0) {
      // The soft rim is beside a surface, and a crack between two.
      depth = min(min(beside.x, beside.y), min(beside.z, beside.w));
      if (depth >= 1.0) discard;
      alpha = max(alpha, max((1.0 - empty.x) * (1.0 - empty.y), (1.0 - empty.z) * (1.0 - empty.w)));
    } else if (empty == vec4(0.0)) {
      // The rim of a surface before another one is not transparent. Surfels that fade out have less weight.
      alpha = min(sum.a / rimWeight, 1.0);
    }
    gl_FragColor = vec4(sum.rgb / sum.a, alpha);
    gl_FragDepth = depth;
  }
`;

type Whole = Mesh<PlaneGeometry, ShaderMaterial>;

/** The part of the picture with people, in normalized device coordinates: left, bottom, right, top. */
export type Part = [number, number, number, number];

export class Composition {
  private readonly points: WebGLRenderTarget;
  private surfels: WebGLRenderTarget | undefined;
  private readonly lit: Whole;
  private readonly blended: Whole;
  private readonly size = new Vector2();
  private readonly clear = new Color();
  /** Surfels can be blended. */
  readonly blends: boolean;

  constructor(
    private readonly renderer: WebGLRenderer,
    private readonly scene: Scene,
  ) {
    this.blends = renderer.extensions.has("EXT_color_buffer_float") || renderer.extensions.has("EXT_color_buffer_half_float");
    this.points = target(false);
    this.lit = whole(pointsFragmentShader, this.points);
    this.blended = whole(surfelsFragmentShader, this.points);
    this.lit.visible = this.blended.visible = false;
    scene.add(this.lit, this.blended);
  }

  /** Draws the scene with its clouds and surfels, if there are any in the picture. */
  draw(camera: PerspectiveCamera, clouds: Part | undefined, surfels: Part | undefined): void {
    const { renderer, lit, blended } = this;
    renderer.getDrawingBufferSize(this.size);
    lit.visible = blended.visible = false;
    if (clouds) {
      this.prepare(this.points, lit, camera, clouds);
      this.render(this.points, camera, pointsLayer, true);
    }
    if (surfels) {
      if (!this.surfels) {
        this.surfels = target(true);
        blended.material.uniforms["colors"]!.value = this.surfels.texture;
        blended.material.uniforms["depths"]!.value = this.surfels.depthTexture;
      }
      this.prepare(this.surfels, blended, camera, surfels);
      this.render(this.surfels, camera, coverLayer, true);
      this.render(this.surfels, camera, blendLayer, false);
    }
    renderer.setRenderTarget(null);
    camera.layers.set(0);
    lit.visible = clouds !== undefined;
    blended.visible = surfels !== undefined;
    renderer.render(this.scene, camera);
  }

  /** Draws everything at once, without lighting and blending, as headsets need it. */
  drawPlain(camera: PerspectiveCamera): void {
    this.lit.visible = this.blended.visible = false;
    camera.layers.set(0);
    this.renderer.render(this.scene, camera);
  }

  private prepare(into: WebGLRenderTarget, { material: { uniforms } }: Whole, camera: PerspectiveCamera, part: Part): void {
    const { x: width, y: height } = this.size;
    if (into.width !== width || into.height !== height) {
      into.setSize(width, height);
    }
    const [inner, outer] = rings.map((r) => Math.max(1, (r * height) / 720)) as [number, number];
    uniforms["range"]!.value.set(camera.near, camera.far);
    uniforms["inner"]!.value.set(inner / width, inner / height);
    uniforms["outer"]!.value.set(outer / width, outer / height);
    uniforms["part"]!.value.set(...part);
    const [left, bottom, right, top] = part.map((v, i) => Math.round((0.5 * v + 0.5) * (i % 2 === 0 ? width : height))) as Part;
    into.scissor.set(left, bottom, right - left, top - bottom);
    into.scissorTest = true;
  }

  private render(into: WebGLRenderTarget, camera: PerspectiveCamera, layer: number, clear: boolean): void {
    const { renderer } = this;
    const alpha = renderer.getClearAlpha();
    renderer.getClearColor(this.clear);
    renderer.setRenderTarget(into);
    renderer.setClearColor(0x000000, 0);
    renderer.autoClear = clear;
    camera.layers.set(layer);
    renderer.render(this.scene, camera);
    renderer.autoClear = true;
    renderer.setClearColor(this.clear, alpha);
  }

  dispose(): void {
    for (const t of [this.points, this.surfels]) {
      t?.depthTexture?.dispose();
      t?.dispose();
    }
    for (const mesh of [this.lit, this.blended]) {
      mesh.geometry.dispose();
      mesh.material.dispose();
      this.scene.remove(mesh);
    }
  }
}

/** Makes an image with depths. */
function target(floats: boolean): WebGLRenderTarget {
  const depthTexture = new DepthTexture(1, 1, UnsignedIntType);
  return new WebGLRenderTarget(1, 1, {
    format: RGBAFormat, type: floats ? HalfFloatType : UnsignedByteType, minFilter: NearestFilter, magFilter: NearestFilter, depthTexture,
  });
}

function whole(fragmentShader: string, { texture, depthTexture }: WebGLRenderTarget): Whole {
  const material = new ShaderMaterial({
    vertexShader: wholeVertexShader,
    fragmentShader,
    uniforms: {
      colors: { value: texture }, depths: { value: depthTexture }, range: { value: new Vector2() }, inner: { value: new Vector2() },
      outer: { value: new Vector2() }, part: { value: new Vector4() },
    },
    transparent: true,
    blending: CustomBlending,
    blendEquation: AddEquation,
    blendSrc: SrcAlphaFactor,
    blendDst: OneMinusSrcAlphaFactor,
    blendSrcAlpha: OneFactor,
    blendDstAlpha: OneMinusSrcAlphaFactor,
  });
  const mesh = new Mesh(new PlaneGeometry(2, 2), material);
  mesh.frustumCulled = false;
  return mesh;
}
