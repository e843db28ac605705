// Where people are who have not said where they stand: around a table, facing one another, in an order that does not change when somebody comes.

export interface Seat {
  position: [number, number, number];
  orientation: [number, number, number, number];
}

/** People sit so far apart, measured along the table's edge, in metres. */
const elbowRoom = 1.1;
const smallestRadius = 0.9;

/** The radius of a table for so many. */
export function tableRadius(people: number): number {
  return Math.max(smallestRadius, (people * elbowRoom) / (2 * Math.PI));
}

/** The seat with the index of so many, the viewer's own first: seat 0 is at +z. Who sits there looks at the middle. */
export function seat(index: number, people: number): Seat {
  const angle = (2 * Math.PI * index) / Math.max(people, 1);
  const radius = tableRadius(people);
  // A publication's front is +z: turned by the seat's angle and half a turn it looks at the middle.
  const half = (angle + Math.PI) / 2;
  return {
    position: [radius * Math.sin(angle), 0, radius * Math.cos(angle)],
    orientation: [0, Math.sin(half), 0, Math.cos(half)],
  };
}

/** Hands out seats: who has one keeps it as long as there are as many, and the table is set anew when their number changes. */
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

  /** The seats of all, besides the viewer's own, which is the first. */
  seats(): Map<string, Seat> {
    return new Map(this.order.map((who, i) => [who, seat(i + 1, this.order.length + 1)]));
  }

  get people(): number {
    return this.order.length + 1;
  }
}
