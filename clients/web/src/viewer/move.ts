// The move of a session to another server, during which the page receives from both servers. The rules
// are those of the Go client (pkg/client/moving.go). All times are in milliseconds.

import { FrameOrder } from "../media/order";

/**
 * Bounds the time for which the page receives from two servers after both are connected: the slots of
 * the second need two round trips, and tiles that are not in sight may not come at all.
 */
const overlap = 2000;
/**
 * The time for which the former connection stays after it is not needed: for the requests for packets
 * of its last frames.
 */
const linger = 300;
/** A tile is expected over the second connection for this time after a frame over the former one. */
const expected = 1000;

/** The parts of the session that decide about the end of a move. */
export interface Progress {
  /** The second connection is established. */
  connected: boolean;
  /** Media of this page leaves over the former connection only. */
  sending: boolean;
}

/**
 * "wait": both connections stay in use. "leave": the former one is not needed. "fail", once: the second
 * one is not established within the time of the move.
 */
export type MoveVerdict = "wait" | "leave" | "fail";

export class Move {
  /** The times of the last frames over the former connection, by tile. */
  private readonly before = new Map<string, number>();
  /** The tiles with a frame over the second connection. */
  private readonly after = new Set<string>();
  private connected: number | undefined;
  /** The time since which the former connection is not needed. */
  private idle: number | undefined;
  private failed = false;

  /** @param deadline is the time at which the former server ends the session */
  constructor(private readonly deadline: number) {}

  /** Records the frame of a tile over one of the connections. */
  arrived(tile: string, former: boolean, now: number): void {
    if (former) {
      this.before.set(tile, now);
    } else {
      this.after.add(tile);
    }
  }

  step(now: number, { connected, sending }: Progress): MoveVerdict {
    if (!connected) {
      const fails = now > this.deadline && !this.failed;
      this.failed ||= fails;
      return fails ? "fail" : "wait";
    }
    this.connected ??= now;
    if (sending || !this.covered(now)) {
      this.idle = undefined;
    } else {
      this.idle ??= now;
    }
    const late = now - this.connected > overlap && !sending;
    const over = this.idle !== undefined && now - this.idle >= linger;
    return late || over || now > this.deadline ? "leave" : "wait";
  }

  /** Reports whether every tile that has come over the former connection lately comes over the second. */
  private covered(now: number): boolean {
    return [...this.before].every(([tile, at]) => now - at >= expected || this.after.has(tile));
  }
}

interface Tile {
  order: FrameOrder;
  /** A slot was assigned since the numbers began. */
  assigned: boolean;
  /** A slot was assigned, and no frame above all before has come since. */
  begins: boolean;
  /** The newest frame, and its capture time in milliseconds, NaN if unknown. */
  newest: number;
  captured: number;
}

/**
 * Drops frames that come again. A slot begins with the newest frame that its server has, so the first frame of a slot
 * may be one that was shown before, over another slot or another connection. The second connection of a move may also
 * be behind the former one after the move. Frames therefore count across slots, and before, during and after a move or
 * an interruption.
 */
export class Duplicates {
  private readonly tiles = new Map<string, Tile>();

  /**
   * Adds a frame of a tile, with its capture time in milliseconds, NaN if unknown. Returns undefined if the frame or a
   * newer one has come before, and otherwise the numbers of the frames that came late since the last call.
   *
   * A publication may be replaced by one of the same name while the page is not told. Its slots are assigned again, its
   * numbers begin again, and its frames are captured later.
   */
  add(key: string, number: number, captured = NaN): number[] | undefined {
    const tile = this.tiles.get(key) ?? begin(false);
    this.tiles.set(key, tile);
    let place = tile.order.place(number);
    if (place !== "newest" && tile.begins && number !== tile.newest && captured > tile.captured) {
      tile.order = new FrameOrder();
      place = tile.order.place(number);
    }
    if (place !== "newest") {
      return undefined;
    }
    tile.begins = false;
    tile.newest = number;
    tile.captured = captured;
    return tile.order.takeLate();
  }

  /**
   * Records that a slot carries a tile. Frames since `restart` that came before the first assignment are those of the
   * former publication, and do not count.
   */
  assigned(key: string): void {
    const tile = this.tiles.get(key);
    if (tile?.assigned) {
      tile.begins = true;
    } else {
      this.tiles.set(key, begin(true));
    }
  }

  /** The numbers of the tiles whose keys have this prefix begin again: a publication has begun or ended. */
  restart(prefix: string): void {
    for (const key of this.tiles.keys()) {
      if (key.startsWith(prefix)) {
        this.tiles.delete(key);
      }
    }
  }

  /**
   * The connection is a new one after an interruption. Tiles whose frames have no capture times begin again: the page
   * cannot know whether they belong to the same publications.
   */
  renewed(): void {
    for (const [key, { captured }] of this.tiles) {
      if (Number.isNaN(captured)) {
        this.tiles.delete(key);
      }
    }
  }
}

function begin(assigned: boolean): Tile {
  return { order: new FrameOrder(), assigned, begins: false, newest: NaN, captured: NaN };
}
