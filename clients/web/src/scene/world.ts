// The space that a conference is shown in: renderer, camera, light and floor, and the loop that draws.

import { Color, GridHelper, PerspectiveCamera, Scene, Vector3, WebGLRenderer } from "three";
import { Navigation } from "./navigation";
import { Objects } from "./objects";
import { seat, tableRadius } from "./seating";
import type { Viewpoint } from "../signal/messages";

/** Vertical angle of view in degrees. */
const fov = 55;
/** How high the eye of somebody who stands is, and what a first look goes to, in metres. */
const eyeHeight = 1.55;
const lookHeight = 1.05;

/** Tells whether pictures are made by the processor, which then has better to do than smooth edges. */
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
  private readonly scene = new Scene();
  private grid: GridHelper | undefined;
  private last = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly drawn: (now: number) => void,
  ) {
    const slow = rendersInSoftware();
    this.renderer = new WebGLRenderer({ canvas, antialias: !slow, powerPreference: "high-performance" });
    this.renderer.setPixelRatio(slow ? 1 : Math.min(devicePixelRatio, 2));
    this.renderer.xr.enabled = true;
    this.scene.add(this.objects.root);
    this.navigation = new Navigation(this.camera, canvas);
    this.theme();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.theme());
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.resize();
    this.home();
    this.renderer.setAnimationLoop((time) => this.draw(time));
  }

  private theme(): void {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    this.scene.background = new Color(dark ? 0x0e1117 : 0xdfe5ee);
    if (this.grid) {
      this.scene.remove(this.grid);
      this.grid.dispose();
    }
    this.grid = new GridHelper(12, 24, dark ? 0x303a4c : 0xaab6c8, dark ? 0x1b2230 : 0xc9d2df);
    this.scene.add(this.grid);
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0 || height === 0) {
      return;
    }
    this.renderer.setSize(width, height, false);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
  }

  /** Goes to the viewer's own seat, far enough back to see everybody. */
  home(): void {
    const people = this.objects.seated;
    const [x, , z] = seat(0, people).position;
    // People stand: 2 m of them and their names fit the height, their table the width. Narrow screens see less to the sides, and need more distance.
    const half = Math.tan((fov * Math.PI) / 360);
    const distance = Math.max(1.05 / half, (tableRadius(people) + 0.4) / (half * this.camera.aspect)) + 0.15;
    const back = Math.max(1, distance / Math.hypot(x, z));
    this.navigation.go(new Vector3(x * back, eyeHeight, z * back), new Vector3(0, lookHeight, 0));
  }

  /** Looks at somebody, from where the eye is. */
  lookAt(participant: string): void {
    const object = this.objects.focus(participant);
    if (object) {
      this.navigation.look(new Vector3(object.position.x, lookHeight, object.position.z));
    }
  }

  private draw(time: number): void {
    const seconds = Math.min((time - this.last) / 1000, 0.1);
    this.last = time;
    if (!this.renderer.xr.isPresenting) {
      this.navigation.step(seconds);
    }
    const height = this.renderer.xr.isPresenting ? this.canvas.height : this.renderer.domElement.height;
    this.objects.project(height / (2 * Math.tan((this.camera.fov * Math.PI) / 360)));
    this.renderer.render(this.scene, this.camera);
    this.drawn(performance.timeOrigin + performance.now());
  }

  /** Where the eye is and what it sees, as the server is told. */
  viewpoint(): Viewpoint {
    const camera = this.renderer.xr.isPresenting ? this.renderer.xr.getCamera() : this.camera;
    const position = camera.getWorldPosition(new Vector3());
    const { x, y, z, w } = camera.quaternion;
    return { position: [position.x, position.y, position.z], orientation: [x, y, z, w], fov: this.camera.fov, aspect: this.camera.aspect };
  }
}
