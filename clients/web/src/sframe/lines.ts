// The lines of the connections with their content, and the frames that arrive more than once.

import type { Assigned } from "./traffic";

/**
 * The number of frames of a line in which a repeated one is a duplicate of the transport: browsers
 * assemble a frame again when its packets arrive again, as in the server's probes of the link. While
 * the page moves to another server, two lines carry the same frames. For sound the number is 1.3 s.
 */
const recentFrames = 64;

/** The most tracks without a line whose last frames are known, the most recent ones: a server's default number of slots. */
const mostEnded = 1024;

export interface Line {
  readonly to: Assigned;
  /** The time of the assignment. */
  readonly since: number;
  /** The last frames by name, with the data of those of which another line may take a copy. */
  readonly recent: Map<string, Uint8Array<ArrayBuffer> | undefined>;
  /** The line has ended, or has another content. */
  over: boolean;
}

export class Lines {
  private readonly byMid = new Map<string, Line>();
  /** The names of the last frames of former lines, by content. */
  private readonly ended = new Map<string, Set<string>>();

  /** Sets the content of a line. */
  assign(mid: string, to: Assigned | undefined, since: number): void {
    const before = this.byMid.get(mid);
    if (before) {
      before.over = true;
      this.keep(before.to, before.recent.keys());
    }
    if (to) {
      this.byMid.set(mid, { to, since, recent: new Map(), over: false });
    } else {
      this.byMid.delete(mid);
    }
  }

  /** Keeps the names of the last frames of a former line. */
  private keep(to: Assigned, recent: Iterable<string>): void {
    const key = keyOf(to);
    const names = new Set([...(this.ended.get(key) ?? []), ...recent]);
    while (names.size > recentFrames) {
      names.delete(names.values().next().value!);
    }
    this.ended.delete(key);
    if (names.size > 0) {
      this.ended.set(key, names);
    }
    if (this.ended.size > mostEnded) {
      this.ended.delete(this.ended.keys().next().value!);
    }
  }

  get(mid: string): Line | undefined {
    return this.byMid.get(mid);
  }

  /** Records an authentic frame of a line, with its data if a line with the same track may take a copy. */
  opened(line: Line, name: string, data?: Uint8Array<ArrayBuffer>): void {
    if (line.over) {
      // The content has changed while the frame was decrypted.
      this.keep(line.to, [name]);
      return;
    }
    this.record(line, name, data);
    const former = this.ended.get(keyOf(line.to));
    former?.delete(former.values().next().value!);
  }

  private record({ recent }: Line, name: string, data?: Uint8Array<ArrayBuffer>): void {
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
    this.record(line, name);
    return { data };
  }

  /**
   * Reports whether a former line with the same content has had a frame: the server begins a slot with
   * its newest frame. Each frame is reported once, and only while the content has had fewer than 64
   * frames since.
   */
  repeated(line: Line, name: string): boolean {
    if (!this.ended.get(keyOf(line.to))?.delete(name)) {
      return false;
    }
    this.record(line, name);
    return true;
  }
}

function keyOf({ participant, publication, tile, description }: Assigned): string {
  return `${participant}\n${publication}\n${tile}/${description ?? ""}`;
}

function sameTrack(a: Assigned, b: Assigned): boolean {
  return a.participant === b.participant && a.publication === b.publication && a.tile === b.tile;
}
