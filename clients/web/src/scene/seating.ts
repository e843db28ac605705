// Positions of participants without a published pose: around a table, facing each other, in an
// order that does not change when a participant joins.

export interface Seat {
  position: [number, number, number];
  orientation: [number, number, number, number];
}

/** The distance between people along the table's edge, in metres. */
export const elbowRoom = 1.1;
const smallestRadius = 0.9;

/** Returns the radius of a table for places of these widths. */
export function radiusFor(widths: readonly number[]): number {
  return Math.max(smallestRadius, sum(widths) / (2 * Math.PI));
}

/** Returns the radius of a table for a number of people. */
export function tableRadius(people: number): number {
  return radiusFor(new Array<number>(people).fill(elbowRoom));
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

/**
 * Returns the seats for places of these widths, the viewer's own first: seat 0 is at +z. Each place
 * has a part of the circle in proportion to its width.
 */
export function seatsFor(widths: readonly number[]): Seat[] {
  const radius = radiusFor(widths);
  const turn = (2 * Math.PI) / sum(widths);
  let end = -(widths[0] ?? 0) / 2;
  return widths.map((width) => {
    const middle = end + width / 2;
    end += width;
    return seatAt(turn * middle, radius);
  });
}

/** Returns the seat with an index among people of the same width. */
export function seat(index: number, people: number): Seat {
  return seatsFor(new Array<number>(Math.max(people, 1)).fill(elbowRoom))[index]!;
}

/**
 * Assigns seats. Participants keep their seat while the places are constant, and all seats are
 * recomputed when places change.
 */
export class Seating {
  /** The widths of the participants' places, in the order of joining. */
  private readonly places = new Map<string, number>();

  /** Adds a participant, or sets the width of the place. */
  join(who: string, width = elbowRoom): void {
    this.places.set(who, width);
  }

  leave(who: string): void {
    this.places.delete(who);
  }

  /** Returns the seats of all except the viewer's own, which is the first. */
  seats(): Map<string, Seat> {
    const seats = seatsFor(this.widths);
    return new Map([...this.places.keys()].map((who, i) => [who, seats[i + 1]!]));
  }

  get people(): number {
    return this.places.size + 1;
  }

  get radius(): number {
    return radiusFor(this.widths);
  }

  private get widths(): number[] {
    return [elbowRoom, ...this.places.values()];
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, v) => total + v, 0);
}
