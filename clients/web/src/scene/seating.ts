// Positions of participants without a published pose: on an arc before the viewer, in an order that
// does not change when a participant joins. No person hides another, and all are seen from the front.

export interface Seat {
  position: [number, number, number];
  orientation: [number, number, number, number];
}

/** The width of a person's place, in metres. */
const elbowRoom = 1.1;
const smallestRadius = 0.9;
/** Half the angle of the arc, in radians: at its ends, panels still face the viewer. */
const arc = 1.2;
/**
 * People look at a point this far before the middle of the arc, in metres: half towards each other
 * and half towards the viewer.
 */
const ahead = 0.8;

/** Returns the radius of an arc for places of these widths. */
export function arcRadius(widths: readonly number[]): number {
  return Math.max(smallestRadius, sum(widths) / (2 * arc));
}

/** Returns the seats on an arc around −z for places of these widths, from right to left. */
export function arcSeats(widths: readonly number[]): Seat[] {
  const radius = arcRadius(widths);
  let end = -sum(widths) / 2;
  return widths.map((width) => {
    const angle = Math.PI + (end + width / 2) / radius;
    end += width;
    const [x, z] = [radius * Math.sin(angle), radius * Math.cos(angle)];
    // A publication's front is +z.
    const half = Math.atan2(-x, ahead - z) / 2;
    return { position: [x, 0, z], orientation: [0, Math.sin(half), 0, Math.cos(half)] };
  });
}

/**
 * Assigns seats. Participants keep their seat while the places are constant, and all seats are
 * recomputed when places change.
 */
export class Seating {
  /** The widths of the participants' places, in the order of joining. */
  private readonly places = new Map<string, number>();

  /** Adds a participant, or sets the width of the place in metres. */
  join(who: string, width = elbowRoom): void {
    this.places.set(who, width);
  }

  leave(who: string): void {
    this.places.delete(who);
  }

  /** Returns the seats of all participants. */
  seats(): Map<string, Seat> {
    const seats = arcSeats([...this.places.values()]);
    return new Map([...this.places.keys()].map((who, i) => [who, seats[i]!]));
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, v) => total + v, 0);
}
