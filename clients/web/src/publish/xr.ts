// Depth from phones' augmented reality: WebXR's depth sensing, with the colours of the phone's
// camera if the browser offers them.

import type { DepthMap, Picture } from "./depth";
import { Lacking } from "./camera";

/** The number of depth samples per row; measurements of phones are hardly finer. */
const across = 192;
/** The distance of the object's middle from the initial position of the phone, in metres. */
const ahead = 1.3;

/** Returns the reason why this browser has no depth, or undefined if it may have depth. */
export async function lacksXR(): Promise<string | undefined> {
  if (!isSecureContext) {
    return "This page was loaded over http, but browsers permit depth only on https pages and on localhost. Open it over https.";
  }
  if (!navigator.xr || !(await navigator.xr.isSessionSupported("immersive-ar").catch(() => false))) {
    return "This browser does not support depth (WebXR). Chrome on an Android phone with Google Play Services for AR does.";
  }
  return undefined;
}

/** The used parts of a view's depth. */
export interface Depths {
  getDepthInMeters(x: number, y: number): number;
  /** The length of a unit of integer depths in metres; 1 for depths in metres. */
  readonly rawValueToMeters?: number;
}

/** The distance between depths that phones distinguish, in metres. */
const millimetre = 0.001;

/**
 * Computes a map from the WebXR data of a view: its depth, its projection, its pose, and its
 * colours, rows from the top, or none.
 */
export function mapOfView(
  depths: Depths, view: { projectionMatrix: Float32Array; transform: { matrix: Float32Array } }, size: { width: number; height: number },
  colors: Uint8Array<ArrayBuffer> | undefined,
): DepthMap {
  const { width, height } = size;
  const p = view.projectionMatrix;
  const depth = new Float32Array(width * height);
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i++) {
      depth[i] = depths.getDepthInMeters((x + 0.5) / width, (y + 0.5) / height);
    }
  }
  const pose = Float32Array.from(view.transform.matrix);
  pose[14]! += ahead;
  return {
    width, height, depth, unit: Math.min(depths.rawValueToMeters ?? millimetre, millimetre), colors: colors ?? shades(depth), pose,
    tangents: [(p[8]! - 1) / p[0]!, (p[8]! + 1) / p[0]!, (p[9]! - 1) / p[5]!, (p[9]! + 1) / p[5]!],
  };
}

/** Returns substitute colours: near points are bright. */
function shades(depth: Float32Array): Uint8Array<ArrayBuffer> {
  const colors = new Uint8Array(4 * depth.length);
  depth.forEach((d, i) => colors.fill(Math.round(255 * Math.min(Math.max(1 - d / 4, 0.15), 1)), 4 * i, 4 * i + 3));
  return colors;
}

/** A part missing in the types of WebXR: the module of raw camera access. */
interface CameraView extends XRView {
  camera?: { width: number; height: number };
}
interface CameraBinding {
  getCameraImage(camera: object): WebGLTexture | null;
}

export class DepthOfXR {
  private waiting: ((picture: Picture | undefined) => void) | undefined;
  private readonly reader: CameraReader | undefined;
  ended: () => void = () => {};

  private constructor(
    private readonly session: XRSession,
    private readonly space: XRReferenceSpace,
    gl: WebGL2RenderingContext,
  ) {
    const Binding = (globalThis as { XRWebGLBinding?: new (session: XRSession, gl: WebGL2RenderingContext) => CameraBinding }).XRWebGLBinding;
    this.reader = Binding && "getCameraImage" in Binding.prototype ? new CameraReader(gl, new Binding(session, gl)) : undefined;
    session.addEventListener("end", () => {
      this.waiting?.(undefined);
      this.ended();
    });
    session.requestAnimationFrame(this.frame);
  }

  /**
   * Starts depth sensing with the element on top. It must be called from a click, and throws errors
   * with a message for the user.
   */
  static async open(overlay: Element): Promise<DepthOfXR> {
    const missing = await lacksXR();
    if (missing) {
      throw new Lacking(missing);
    }
    const wishes = {
      requiredFeatures: ["depth-sensing"],
      optionalFeatures: ["local-floor", "camera-access", "dom-overlay"],
      depthSensing: { usagePreference: ["cpu-optimized"], dataFormatPreference: ["luminance-alpha", "float32"] },
      domOverlay: { root: overlay },
    };
    let session: XRSession | undefined;
    try {
      session = await navigator.xr!.requestSession("immersive-ar", wishes as XRSessionInit);
      const gl = document.createElement("canvas").getContext("webgl2", { xrCompatible: true });
      if (!gl) {
        throw new Error("there is no WebGL 2");
      }
      await session.updateRenderState({ baseLayer: new XRWebGLLayer(session, gl) });
      const space = await floorOf(session);
      return new DepthOfXR(session, space, gl);
    } catch (error) {
      void session?.end().catch(() => {});
      throw new Lacking(`This phone offers no depth to web pages: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  private readonly frame = (_: number, frame: XRFrame): void => {
    this.session.requestAnimationFrame(this.frame);
    const view = frame.getViewerPose(this.space)?.views[0] as CameraView | undefined;
    const depths = view && this.waiting ? frame.getDepthInformation?.(view) : undefined;
    if (!view || !depths) {
      return;
    }
    const width = Math.min(across, depths.width);
    const size = { width, height: Math.max(1, Math.round((width * depths.height) / depths.width)) };
    const colors = view.camera ? this.reader?.read(view.camera, size) : undefined;
    this.waiting?.({ kind: "map", map: mapOfView(depths, view, size, colors) });
    this.waiting = undefined;
  };

  /** Waits for the next picture. */
  picture(): Promise<Picture | undefined> {
    return new Promise((resolve) => {
      this.waiting = resolve;
    });
  }

  close(): void {
    void this.session.end().catch(() => {});
  }
}

/**
 * Returns the reference space of a session: with its origin at the floor if the phone detects it.
 */
function floorOf(session: XRSession): Promise<XRReferenceSpace> {
  return session.requestReferenceSpace("local-floor").catch(() => session.requestReferenceSpace("local"));
}

/** Reads the colours of the phone's camera: the graphics card scales the large picture down. */
class CameraReader {
  private readonly program: WebGLProgram;
  private readonly target: WebGLFramebuffer;
  private readonly texture: WebGLTexture;

  constructor(
    private readonly gl: WebGL2RenderingContext,
    private readonly binding: CameraBinding,
  ) {
    this.program = programOf(gl);
    this.target = gl.createFramebuffer();
    this.texture = gl.createTexture();
  }

  read(camera: object, { width, height }: { width: number; height: number }): Uint8Array<ArrayBuffer> | undefined {
    const { gl } = this;
    const image = this.binding.getCameraImage(camera);
    if (!image) {
      return undefined;
    }
    gl.bindTexture(gl.TEXTURE_2D, this.texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, width, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, null);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, this.texture, 0);
    gl.viewport(0, 0, width, height);
    gl.useProgram(this.program);
    gl.bindTexture(gl.TEXTURE_2D, image);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    const pixels = new Uint8Array(4 * width * height);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    return pixels;
  }
}

// One triangle covers everything. It is upside down, since pixels are read from the bottom, but
// needed from the top.
const vertexShader = `#version 300 es
  out vec2 at;
  void main() {
    vec2 corner = vec2(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0);
    at = vec2(0.5 + 0.5 * corner.x, 0.5 - 0.5 * corner.y);
    gl_Position = vec4(corner, 0.0, 1.0);
  }`;
const fragmentShader = `#version 300 es
  precision mediump float;
  uniform sampler2D image;
  in vec2 at;
  out vec4 color;
  void main() { color = texture(image, at); }`;

function programOf(gl: WebGL2RenderingContext): WebGLProgram {
  const program = gl.createProgram();
  for (const [type, source] of [[gl.VERTEX_SHADER, vertexShader], [gl.FRAGMENT_SHADER, fragmentShader]] as const) {
    const shader = gl.createShader(type)!;
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  return program;
}
