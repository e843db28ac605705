// Navigation: orbit with the mouse or a finger, walk with the keyboard.

import { type PerspectiveCamera, Vector3 } from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";

/** Metres and radians per second. */
const walking = 1.6;
const turning = 1.4;

const moves: Record<string, [number, number, number]> = {
  KeyW: [0, 0, -1], KeyS: [0, 0, 1], KeyA: [-1, 0, 0], KeyD: [1, 0, 0], KeyE: [0, 1, 0], KeyQ: [0, -1, 0],
};
const turns: Record<string, [number, number]> = {
  ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1],
};

export class Navigation {
  private readonly orbit: OrbitControls;
  private readonly held = new Set<string>();
  private readonly offset = new Vector3();
  private readonly up = new Vector3(0, 1, 0);

  constructor(
    private readonly camera: PerspectiveCamera,
    private readonly element: HTMLElement,
  ) {
    this.orbit = new OrbitControls(camera, element);
    this.orbit.enableDamping = true;
    this.orbit.minDistance = 0.2;
    this.orbit.maxDistance = 20;
    element.addEventListener("keydown", (e) => this.key(e, true));
    element.addEventListener("keyup", (e) => this.key(e, false));
    element.addEventListener("blur", () => this.held.clear());
  }

  private key(event: KeyboardEvent, down: boolean): void {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.code in moves || event.code in turns)) {
      return;
    }
    event.preventDefault();
    if (down) {
      this.held.add(event.code);
    } else {
      this.held.delete(event.code);
    }
  }

  /** Ends the reactions to mouse and fingers. */
  close(): void {
    this.orbit.dispose();
  }

  /** Moves to a position and looks at another one. */
  go(from: Vector3, at: Vector3): void {
    this.camera.position.copy(from);
    this.orbit.target.copy(at);
    this.orbit.update();
  }

  look(at: Vector3): void {
    this.go(this.camera.position, at);
  }

  /** Advances by the given seconds. */
  step(seconds: number): void {
    for (const code of this.held) {
      const move = moves[code];
      if (move) {
        this.walk(move, seconds);
      }
      const turn = turns[code];
      if (turn) {
        this.turn(turn, seconds);
      }
    }
    this.orbit.update(seconds);
  }

  private walk([x, y, z]: [number, number, number], seconds: number): void {
    this.offset.set(x, 0, z).applyQuaternion(this.camera.quaternion);
    this.offset.y = 0;
    if (this.offset.lengthSq() > 0) {
      this.offset.normalize();
    }
    this.offset.y += y;
    this.offset.multiplyScalar(walking * seconds);
    this.camera.position.add(this.offset);
    this.orbit.target.add(this.offset);
  }

  /** Turns the head: the point looked at moves, the eye stays. */
  private turn([yaw, pitch]: [number, number], seconds: number): void {
    this.offset.subVectors(this.orbit.target, this.camera.position);
    this.offset.applyAxisAngle(this.up, yaw * turning * seconds);
    const side = new Vector3().crossVectors(this.offset, this.up).normalize();
    const raised = this.offset.clone().applyAxisAngle(side, pitch * turning * seconds);
    // Straight up and straight down have no sideways direction.
    if (Math.abs(raised.y) < 0.98 * raised.length()) {
      this.offset.copy(raised);
    }
    this.orbit.target.addVectors(this.camera.position, this.offset);
  }

  get target(): Vector3 {
    return this.orbit.target;
  }

  focus(): void {
    this.element.focus();
  }
}
