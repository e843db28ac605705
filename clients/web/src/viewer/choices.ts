// The user's choices of qualities, as stored by the server: for tiles, and for whole publications.

import type { Choice, TileRef } from "../signal/messages";

export class Choices {
  /** By publication, then by tile; the choice for the whole publication has no tile. */
  private readonly byPublication = new Map<string, Map<number | undefined, Choice>>();

  /** Stores a choice. One for a whole publication replaces those for its tiles. */
  set(choice: Choice): void {
    const key = keyOf(choice);
    const before = choice.tile === undefined ? undefined : this.byPublication.get(key);
    this.byPublication.set(key, (before ?? new Map<number | undefined, Choice>()).set(choice.tile, choice));
  }

  /** Returns the choice for a tile: its own, or that of its publication. */
  of(track: TileRef): Choice["quality"] {
    const choices = this.byPublication.get(keyOf(track));
    return (choices?.get(track.tile) ?? choices?.get(undefined))?.quality ?? "auto";
  }

  /** Yields all choices by publication, the one for the whole before those for tiles. */
  *[Symbol.iterator](): Generator<Choice[]> {
    for (const choices of this.byPublication.values()) {
      yield [...choices.values()];
    }
  }
}

function keyOf({ participant, publication }: { participant: string; publication: string }): string {
  return `${participant}\n${publication}`;
}
