// Virtual reality: the position of the wearer's real room within the space, and its motion with the
// controllers' sticks.

import { Group, type PerspectiveCamera, Quaternion, type Scene, Vector3, type WebGLRenderer } from "three";

/**
 * Metres per second, and radians for each flick of a stick: smooth rotation causes motion sickness.
 */
const walking = 1.4;
const flick = Math.PI / 6;
/** A stick counts as pushed beyond this value, and as released below half of it. */
const pushed = 0.5;

const up = new Vector3(0, 1, 0);

export class Immersion {
  /**
   * The parent of the camera: the middle of the real floor with its rotation about the vertical. On
   * the screen it is at the origin.
   */
  private readonly floor = new Group();
  private turned = false;

  constructor(
    private readonly renderer: WebGLRenderer,
    private readonly camera: PerspectiveCamera,
    scene: Scene,
  ) {
    this.floor.add(camera);
    scene.add(this.floor);
  }

  /**
   * Starts the session with the wearer at a position, facing a direction. It throws if the headset
   * refuses.
   */
  async begin(session: XRSession, at: Vector3, ahead: Vector3): Promise<void> {
    const place = at.clone().setY(0);
    this.renderer.xr.setReferenceSpaceType("local-floor");
    await this.renderer.xr.setSession(session);
    this.floor.position.copy(place);
    this.floor.rotation.y = Math.atan2(-ahead.x, -ahead.z);
  }

  end(): void {
    this.floor.position.setScalar(0);
    this.floor.rotation.y = 0;
  }

  /** Advances by the given seconds. */
  step(seconds: number): void {
    const sources = this.renderer.xr.getSession()?.inputSources ?? [];
    for (const { handedness, gamepad } of sources) {
      // In the WebXR mapping, axes 0 and 1 are a touchpad's, 2 and 3 the stick's.
      const [x, y] = [gamepad?.axes[2] ?? 0, gamepad?.axes[3] ?? 0];
      if (handedness === "right") {
        this.turn(x);
      } else if (Math.hypot(x, y) > 0.15) {
        this.walk(x, y, seconds);
      }
    }
  }

  private walk(x: number, y: number, seconds: number): void {
    const way = new Vector3(x, 0, y).applyQuaternion(this.camera.getWorldQuaternion(new Quaternion()));
    way.y = 0;
    if (way.lengthSq() > 0) {
      this.floor.position.addScaledVector(way.normalize(), Math.min(Math.hypot(x, y), 1) * walking * seconds);
    }
  }

  /** Rotates about the position of the wearer, once for each flick. */
  private turn(x: number): void {
    if (Math.abs(x) < pushed / 2) {
      this.turned = false;
    }
    if (Math.abs(x) < pushed || this.turned) {
      return;
    }
    this.turned = true;
    const angle = -Math.sign(x) * flick;
    const head = this.camera.getWorldPosition(new Vector3());
    this.floor.position.sub(head).applyAxisAngle(up, angle).add(head).setY(0);
    this.floor.rotation.y += angle;
  }
}
