// The lines of the connections with their content, and the frames that arrive more than once.

import type { Assigned } from "./traffic";

/**
 * The number of frames of a line in which a repeated one is a duplicate of the transport: browsers
 * assemble a frame again when its packets arrive again, as in the server's probes of the link. While
 * the page moves to another server, two lines carry the same frames. For sound the number is 1.3 s.
 */
const recentFrames = 64;

export interface Line {
  readonly to: Assigned;
  /** The time of the assignment. */
  readonly since: number;
  /** The last frames by name, with the data of those of which another line may take a copy. */
  readonly recent: Map<string, Uint8Array<ArrayBuffer> | undefined>;
}

export class Lines {
  private readonly byMid = new Map<string, Line>();

  /** Sets the content of a line. */
  assign(mid: string, to: Assigned | undefined, since: number): void {
    if (to) {
      this.byMid.set(mid, { to, since, recent: new Map() });
    } else {
      this.byMid.delete(mid);
    }
  }

  get(mid: string): Line | undefined {
    return this.byMid.get(mid);
  }

  /** Records an authentic frame of a line, with its data if a line with the same track may take a copy. */
  opened({ recent }: Line, name: string, data?: Uint8Array<ArrayBuffer>): void {
    recent.set(name, data);
    if (recent.size > recentFrames) {
      recent.delete(recent.keys().next().value!);
    }
  }

  /**
   * Takes the copy of a frame that another line with the same track has had. Returns undefined if there
   * is none. Each frame has one copy, since a server that repeats frames must not have them played again.
   */
  copy(line: Line, name: string): { data: Uint8Array<ArrayBuffer> | undefined } | undefined {
    const other = [...this.byMid.values()].find((l) => l !== line && l.recent.has(name) && sameTrack(l.to, line.to));
    if (!other) {
      return undefined;
    }
    const data = other.recent.get(name);
    other.recent.delete(name);
    this.opened(line, name);
    return { data };
  }
}

function sameTrack(a: Assigned, b: Assigned): boolean {
  return a.participant === b.participant && a.publication === b.publication && a.tile === b.tile;
}
