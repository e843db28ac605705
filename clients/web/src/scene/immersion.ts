// Virtual reality: where the room that the wearer really stands in lies within the space, and how it is moved through that with the controllers' sticks.

import { Group, type PerspectiveCamera, Quaternion, type Scene, Vector3, type WebGLRenderer } from "three";

/** Metres per second, and radians for each flick of a stick: smooth turning makes people sick. */
const walking = 1.4;
const flick = Math.PI / 6;
/** A stick counts as pushed beyond this, and as let go below half of it. */
const pushed = 0.5;

const up = new Vector3(0, 1, 0);

export class Immersion {
  /** What the camera hangs on: the middle of the real floor, and how that is turned about the vertical. On the screen it lies at the origin. */
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

  /** Lets the wearer stand at a place, looking along a direction. It throws where the headset refuses. */
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

  /** Moves on by so many seconds. */
  step(seconds: number): void {
    const sources = this.renderer.xr.getSession()?.inputSources ?? [];
    for (const { handedness, gamepad } of sources) {
      // Axes 0 and 1 are a touchpad's in the mapping of WebXR, 2 and 3 the stick's.
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

  /** Turns about where the wearer stands, once for each flick. */
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
