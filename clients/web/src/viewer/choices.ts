// What a person has chosen to be sent, as the server keeps it: for tiles, and for whole publications.

import type { Choice, TileRef } from "../signal/messages";

export class Choices {
  /** By publication, then by tile; the choice for the whole of it has no tile. */
  private readonly byPublication = new Map<string, Map<number | undefined, Choice>>();

  /** Keeps a choice. One for a whole publication takes the place of those for its tiles. */
  set(choice: Choice): void {
    const key = keyOf(choice);
    const before = choice.tile === undefined ? undefined : this.byPublication.get(key);
    this.byPublication.set(key, (before ?? new Map<number | undefined, Choice>()).set(choice.tile, choice));
  }

  /** What is chosen for a tile: by itself, or with its publication. */
  of(track: TileRef): Choice["quality"] {
    const choices = this.byPublication.get(keyOf(track));
    return (choices?.get(track.tile) ?? choices?.get(undefined))?.quality ?? "auto";
  }

  /** All choices, publication by publication, the one for the whole before those for tiles. */
  *[Symbol.iterator](): Generator<Choice[]> {
    for (const choices of this.byPublication.values()) {
      yield [...choices.values()];
    }
  }
}

function keyOf({ participant, publication }: { participant: string; publication: string }): string {
  return `${participant}\n${publication}`;
}
