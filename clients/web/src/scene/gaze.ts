// The messages to the server about the viewer: the position of the eye, and the places of objects
// that have no pose of their own.

import type { Placement, Viewpoint } from "../signal/messages";

/**
 * The interval of viewpoint messages while the eye moves, in milliseconds; at rest it is one
 * second.
 */
const lookInterval = 33;
const restInterval = 1000;

/** The parts of a world that the messages describe. */
export interface Seen {
  viewpoint(): Viewpoint;
  objects: { placements(): Placement[] };
}

export interface GazeEvents {
  look(viewpoint: Viewpoint): void;
  /** Reports whether the message was sent. */
  arrange(objects: Placement[]): boolean;
}

export class Gaze {
  private looked = 0;
  private seen = "";
  private arranged = "";

  constructor(
    private readonly world: Seen,
    private readonly events: GazeEvents,
  ) {}

  /** Reports whether a viewpoint was sent. */
  get begun(): boolean {
    return this.seen !== "";
  }

  /** The session was entered: the next step sends the places again, since a new session does not have them. */
  entered(): void {
    this.arranged = "";
  }

  /** Sends the changes since the last call. It is called after each picture, with milliseconds since 1970. */
  step(now: number): void {
    if (now - this.looked < lookInterval) {
      return;
    }
    const objects = this.world.objects.placements();
    const places = JSON.stringify(objects);
    if (places !== this.arranged && this.events.arrange(objects)) {
      this.arranged = places;
    }
    const viewpoint = this.world.viewpoint();
    const key = [...viewpoint.position, ...viewpoint.orientation, viewpoint.aspect].map((v) => v.toFixed(4)).join();
    if (key === this.seen && now - this.looked < restInterval) {
      return;
    }
    this.looked = now;
    this.seen = key;
    this.events.look(viewpoint);
  }
}
