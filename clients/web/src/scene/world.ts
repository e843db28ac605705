// The space that shows a conference: renderer, camera, light and floor, and the drawing loop.

import { PerspectiveCamera, Quaternion, Raycaster, Scene, Vector2, Vector3, WebGLRenderer } from "three";
import { Cloud } from "./cloud";
import { Composition } from "./composition";
import { Detail, type DetailName } from "./detail";
import { Ground } from "./floor";
import { viewOf } from "./framing";
import { Immersion } from "./immersion";
import { Navigation } from "./navigation";
import { Objects } from "./objects";
import type { Panel } from "./panel";
import { Surfels } from "./surfels";
import type { Viewpoint } from "../signal/messages";

/** Vertical angle of view in degrees. */
const fov = 55;
/** The free part of the picture, in normalized device coordinates, between the heading and the controls. */
const free = { side: 0.92, top: 0.86, bottom: 0.7 };
/** The view of an enlarged panel, in relation to the panel: the controls cover a part of the rest. */
const surroundings = 1.3;
/** The rise of the view as a share of the covered part. */
const raisedShare = 0.2;
/** A viewer who has moved less than this, in metres, has not moved. */
const still = 0.01;

/** The parts of the picture that panels cover, in pixels from the edge. */
export interface Covered {
  left: number;
  right: number;
  bottom: number;
}

export const uncovered: Covered = { left: 0, right: 0, bottom: 0 };

/** Reports whether the processor renders the pictures; antialiasing would then be too slow. */
function rendersInSoftware(): boolean {
  const context = document.createElement("canvas").getContext("webgl2");
  const information = context?.getExtension("WEBGL_debug_renderer_info");
  const name = context && information ? String(context.getParameter(information.UNMASKED_RENDERER_WEBGL)) : "";
  context?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software|basic render/i.test(name);
}

export class World {
  readonly objects = new Objects();
  readonly camera = new PerspectiveCamera(fov, 1, 0.05, 100);
  readonly navigation: Navigation;
  readonly renderer: WebGLRenderer;
  private readonly immersion: Immersion;
  private readonly scene = new Scene();
  private readonly ground = new Ground();
  private readonly composition: Composition;
  private readonly detail: Detail;
  private readonly sizes = new ResizeObserver(() => this.resize());
  /** Each call of matchMedia returns another object, and listeners belong to the object. */
  private readonly dark = matchMedia("(prefers-color-scheme: dark)");
  /** The covered parts of the picture, in pixels. */
  private covered = uncovered;
  private last = 0;
  /** The viewer's seat, from which the viewer has perhaps moved. */
  private readonly seat = { eye: new Vector3(), target: new Vector3() };
  /** The enlarged panel, and the view before. */
  private near: { panel: Panel; eye: Vector3; target: Vector3 } | undefined;

  /**
   * @param before is called before each picture, for updates of its content
   * @param drawn is called after it, with milliseconds since 1970
   * @param detail is the detail of the picture; by default pictures that take too long get less
   */
  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly before: () => void,
    private readonly drawn: (now: number) => void,
    detail?: DetailName,
  ) {
    this.detail = new Detail(detail);
    const slow = rendersInSoftware();
    this.renderer = new WebGLRenderer({ canvas, antialias: !slow, powerPreference: "high-performance" });
    this.renderer.setPixelRatio(slow ? 1 : Math.min(devicePixelRatio, 2));
    this.renderer.xr.enabled = true;
    this.immersion = new Immersion(this.renderer, this.camera, this.scene);
    this.objects.mipmaps = !slow;
    this.composition = new Composition(this.renderer, this.scene);
    this.scene.add(this.ground.object, this.objects.root);
    this.navigation = new Navigation(this.camera, canvas);
    this.theme();
    this.dark.addEventListener("change", this.theme);
    this.sizes.observe(canvas);
    this.resize();
    this.home();
    this.renderer.setAnimationLoop((time) => this.draw(time));
  }

  private readonly theme = (): void => this.ground.theme(this.dark.matches);

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0 || height === 0 || this.immersed) {
      return;
    }
    this.renderer.setSize(width, height, false);
    this.camera.aspect = width / height;
    // The middle of the view is in the middle of what is free beside panels. Above panels, people stay as large as
    // before, with their faces above the covered part and below the upper edge.
    const { left, right, bottom } = this.covered;
    if (left > 0 || right > 0 || bottom > 0) {
      this.camera.setViewOffset(width, height, (right - left) / 2, raisedShare * bottom, width, height);
    } else {
      this.camera.clearViewOffset();
    }
    this.camera.updateProjectionMatrix();
  }

  /** Keeps people out of parts of the picture. A viewer at the seat sees all of them in the rest. */
  cover(parts: Covered): void {
    const { left, right, bottom } = this.covered;
    if (parts.left === left && parts.right === right && parts.bottom === bottom) {
      return;
    }
    const { atHome } = this;
    this.covered = parts;
    this.resize();
    if (atHome && !this.near && !this.immersed) {
      this.home();
    }
  }

  /** Moves to the viewer's own seat, from which people fill the picture. */
  home(): void {
    this.near = undefined;
    const half = Math.tan((fov * Math.PI) / 360);
    const { left, right } = this.covered;
    const side = free.side * (1 - (left + right) / Math.max(this.canvas.clientWidth, 1));
    const { eye, target } = viewOf(this.objects.framed().objects, half, half * this.camera.aspect, { ...free, side });
    this.seat.eye.set(...eye);
    this.seat.target.set(...target);
    this.navigation.go(this.seat.eye, this.seat.target);
    this.objects.face(this.seat.eye);
    this.objects.framed();
  }

  /** Reports whether the viewer has not moved from the seat. */
  get atHome(): boolean {
    return this.camera.position.distanceTo(this.seat.eye) < still && this.navigation.target.distanceTo(this.seat.target) < still;
  }

  /** Returns the panel at a position of the canvas, in pixels from its corner. */
  panelAt(x: number, y: number): Panel | undefined {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ray = new Raycaster();
    ray.setFromCamera(new Vector2((2 * x) / width - 1, 1 - (2 * y) / height), this.camera);
    const panels = this.objects.panels().map(({ panel }) => panel);
    const [hit] = ray.intersectObjects(panels.map((p) => p.object));
    return hit && panels.find((p) => p.object === hit.object.parent);
  }

  get enlarged(): Panel | undefined {
    return this.near?.panel;
  }

  /**
   * Moves in front of a panel, so that it fills the view and the server sends the quality for that;
   * undefined returns to the view before.
   */
  enlarge(panel: Panel | undefined): void {
    const before = this.near ?? { eye: this.camera.position.clone(), target: this.navigation.target.clone() };
    if (!panel) {
      if (this.near) {
        this.navigation.go(before.eye, before.target);
      }
      this.near = undefined;
      return;
    }
    this.near = { panel, eye: before.eye, target: before.target };
    const at = panel.object.getWorldPosition(new Vector3());
    const scale = panel.object.getWorldScale(new Vector3());
    const front = new Vector3(0, 0, 1).applyQuaternion(panel.object.getWorldQuaternion(new Quaternion()));
    const half = Math.tan((fov * Math.PI) / 360);
    const distance = (Math.max(scale.y * panel.height, (scale.x * panel.width) / this.camera.aspect) / 2 / half) * surroundings;
    this.navigation.go(at.clone().addScaledVector(front, distance), at);
  }

  /** Looks at a participant from the present position. */
  lookAt(participant: string): void {
    const at = this.objects.focus(participant);
    if (at) {
      this.navigation.look(at);
    }
  }

  get immersed(): boolean {
    return this.renderer.xr.isPresenting;
  }

  /** Shows the space in a headset from the present position. It throws if the headset refuses. */
  async immerse(session: XRSession): Promise<void> {
    const ahead = this.navigation.target.clone().sub(this.camera.position);
    await this.immersion.begin(session, this.camera.position, ahead);
    // The renderer receives the end first, and returns the canvas to the screen.
    session.addEventListener("end", () => this.emerge());
  }

  /** Returns to the screen. The headset has moved the camera and changed its angle of view. */
  private emerge(): void {
    this.immersion.end();
    this.camera.fov = fov;
    this.resize();
    this.home();
  }

  /** The number of pixels for a length of 1 at distance 1. */
  private get pixelsPerUnit(): number {
    const eye = this.immersed ? this.renderer.xr.getCamera().cameras[0] : undefined;
    if (eye?.viewport) {
      return (eye.viewport.w * eye.projectionMatrix.elements[5]!) / 2;
    }
    return this.renderer.domElement.height / (2 * Math.tan((this.camera.fov * Math.PI) / 360));
  }

  /** Ends the drawing, and returns the memory of the graphics card. */
  close(): void {
    this.renderer.setAnimationLoop(null);
    this.dark.removeEventListener("change", this.theme);
    this.sizes.disconnect();
    this.navigation.close();
    this.composition.dispose();
    this.renderer.dispose();
    this.renderer.forceContextLoss();
  }

  private draw(time: number): void {
    if (this.objects.filled) {
      this.detail.add(time - this.last);
    }
    const seconds = Math.min((time - this.last) / 1000, 0.1);
    this.last = time;
    if (this.immersed) {
      this.immersion.step(seconds);
    } else {
      this.navigation.step(seconds);
    }
    this.before();
    // People who were measured, joined or left have changed the first view.
    if (!this.immersed && !this.near && this.atHome && this.objects.framed().moved) {
      this.home();
    }
    this.objects.step(seconds, this.camera.getWorldPosition(new Vector3()));
    this.render();
    this.drawn(performance.timeOrigin + performance.now());
  }

  /** Draws the space. */
  render(): void {
    const { camera, composition, objects, detail } = this;
    const plain = this.immersed || detail.name === "light";
    objects.project(this.pixelsPerUnit);
    objects.compose(!plain, composition.blends);
    if (plain) {
      composition.drawPlain(camera);
      return;
    }
    this.scene.updateMatrixWorld();
    camera.updateMatrixWorld();
    const shown = objects.root.visible;
    composition.draw(camera, shown ? objects.part(camera, Cloud) : undefined, shown && composition.blends ? objects.part(camera, Surfels) : undefined);
  }

  /** Returns the position and the view of the eye for the server. */
  viewpoint(): Viewpoint {
    // This also holds in a headset: drawing moves the camera to the head's position, with a frustum
    // that contains those of both eyes.
    const { x, y, z } = this.camera.getWorldPosition(new Vector3());
    const turn = this.camera.getWorldQuaternion(new Quaternion());
    const { elements } = this.camera.projectionMatrix;
    return {
      position: [x, y, z], orientation: [turn.x, turn.y, turn.z, turn.w],
      fov: (360 / Math.PI) * Math.atan(1 / elements[5]!), aspect: elements[5]! / elements[0]!,
    };
  }
}
