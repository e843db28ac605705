// Positions of participants without a published pose: around a table, facing each other, in an
// order that does not change when a participant joins.

export interface Seat {
  position: [number, number, number];
  orientation: [number, number, number, number];
}

/** The distance between people along the table's edge, in metres. */
const elbowRoom = 1.1;
const smallestRadius = 0.9;

/** Returns the radius of a table for a number of people. */
export function tableRadius(people: number): number {
  return Math.max(smallestRadius, (people * elbowRoom) / (2 * Math.PI));
}

/**
 * Returns the seat with an index, the viewer's own first: seat 0 is at +z. Its occupant faces the
 * middle.
 */
export function seat(index: number, people: number): Seat {
  const angle = (2 * Math.PI * index) / Math.max(people, 1);
  const radius = tableRadius(people);
  // A publication's front is +z: rotated by the seat's angle and half a turn, it faces the middle.
  const half = (angle + Math.PI) / 2;
  return {
    position: [radius * Math.sin(angle), 0, radius * Math.cos(angle)],
    orientation: [0, Math.sin(half), 0, Math.cos(half)],
  };
}

/**
 * Assigns seats. Participants keep their seat while their number is constant, and all seats are
 * recomputed when it changes.
 */
export class Seating {
  private readonly order: string[] = [];

  join(who: string): void {
    if (!this.order.includes(who)) {
      this.order.push(who);
    }
  }

  leave(who: string): void {
    const at = this.order.indexOf(who);
    if (at >= 0) {
      this.order.splice(at, 1);
    }
  }

  /** Returns the seats of all except the viewer's own, which is the first. */
  seats(): Map<string, Seat> {
    return new Map(this.order.map((who, i) => [who, seat(i + 1, this.order.length + 1)]));
  }

  get people(): number {
    return this.order.length + 1;
  }
}
