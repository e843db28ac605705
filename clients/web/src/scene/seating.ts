// Positions of participants without a published pose: around a table, facing each other, in an
// order that does not change when a participant joins. If some have panels, all are on an arc before
// the viewer, where no panel hides another.

export interface Seat {
  position: [number, number, number];
  orientation: [number, number, number, number];
}

/** The distance between people along the table's edge, in metres. */
const elbowRoom = 1.1;
const smallestRadius = 0.9;
/** Half the angle of the arc, in radians: at its ends, panels still face the viewer. */
const arc = 1.2;

/** Returns the radius of a table for a number of people. */
export function tableRadius(people: number): number {
  return Math.max(smallestRadius, (people * elbowRoom) / (2 * Math.PI));
}

/** Returns the radius of an arc for places of these widths. */
export function arcRadius(widths: readonly number[]): number {
  return Math.max(smallestRadius, sum(widths) / (2 * arc));
}

/** Returns the seat at an angle around a table. The occupant faces the middle. */
function seatAt(angle: number, radius: number): Seat {
  // A publication's front is +z: rotated by the seat's angle and half a turn, it faces the middle.
  const half = (angle + Math.PI) / 2;
  return {
    position: [radius * Math.sin(angle), 0, radius * Math.cos(angle)],
    orientation: [0, Math.sin(half), 0, Math.cos(half)],
  };
}

/** Returns the seat with an index around a table, the viewer's own first: seat 0 is at +z. */
export function seat(index: number, people: number): Seat {
  return seatAt((2 * Math.PI * index) / Math.max(people, 1), tableRadius(people));
}

/** Returns the seats on an arc around −z for places of these widths, from right to left. */
export function arcSeats(widths: readonly number[]): Seat[] {
  const radius = arcRadius(widths);
  let end = -sum(widths) / 2;
  return widths.map((width) => {
    const middle = end + width / 2;
    end += width;
    return seatAt(Math.PI + middle / radius, radius);
  });
}

/**
 * Assigns seats. Participants keep their seat while the places are constant, and all seats are
 * recomputed when places change.
 */
export class Seating {
  /** The participants' places, in the order of joining. */
  private readonly places = new Map<string, { width: number; panels: boolean }>();

  /** Adds a participant, or sets the width of the place in metres and whether it has panels. */
  join(who: string, width = elbowRoom, panels = false): void {
    this.places.set(who, { width, panels });
  }

  leave(who: string): void {
    this.places.delete(who);
  }

  /** Returns the seats of all except the viewer's own, which is the first. */
  seats(): Map<string, Seat> {
    const seats = this.arched ? arcSeats(this.widths) : this.widths.map((_, i) => seat(i + 1, this.people));
    return new Map([...this.places.keys()].map((who, i) => [who, seats[i]!]));
  }

  get people(): number {
    return this.places.size + 1;
  }

  get radius(): number {
    return this.arched ? arcRadius(this.widths) : tableRadius(this.people);
  }

  /** The seats are on an arc before the viewer. */
  get arched(): boolean {
    return [...this.places.values()].some((p) => p.panels);
  }

  private get widths(): number[] {
    return [...this.places.values()].map((p) => p.width);
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, v) => total + v, 0);
}
