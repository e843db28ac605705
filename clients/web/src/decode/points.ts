// Decoded points, and what turns a frame's data into them.

export class DecodeError extends Error {}

/** Points of one tile. The arrays may be longer than the points take. */
export interface Points {
  count: number;
  /** x, y, z in metres for each point. */
  positions: Float32Array<ArrayBuffer>;
  /** red, green, blue for each point. */
  colors: Uint8Array<ArrayBuffer>;
}

/** Where decoders put points: arrays that are used again and again, grown when a frame needs more. */
export class PointPool {
  private free: Points[] = [];

  /** Gives arrays with room for so many points. */
  take(count: number): Points {
    const at = this.free.findIndex((p) => p.positions.length >= 3 * count);
    const found = at < 0 ? undefined : this.free.splice(at, 1)[0];
    if (found) {
      found.count = count;
      return found;
    }
    // A quarter more than asked for, so that frames that vary in size find room. One that is too small goes, lest the pool grows with every new size.
    this.free.shift();
    const room = Math.ceil(count * 1.25) + 64;
    return { count, positions: new Float32Array(3 * room), colors: new Uint8Array(3 * room) };
  }

  give(p: Points): void {
    this.free.push(p);
  }
}

/** What a frame may hold at most: as many points as fit what decoders are ready to allocate (16 bytes each). */
export const maxPoints = 8_000_000;

export interface Decoder {
  decode(data: Uint8Array, pool: PointPool): Points | Promise<Points>;
}

const white = 255;

/** Checks a number of points that a frame announces. */
export function checkCount(codec: string, count: number): void {
  if (count > maxPoints) {
    throw new DecodeError(`${codec}: ${count} points, expected at most ${maxPoints}`);
  }
}

/** What a frame of few bytes may hold: 65,536 points, and 64 more for each byte; points that coincide cost next to nothing (docs/codec.md, "Bounds"). */
export function boundPoints(codec: string, count: number, bytes: number): void {
  const most = Math.min(4_194_304, 65_536 + 64 * bytes);
  if (count < 1 || count > most) {
    throw new DecodeError(`${codec}: ${count} points in ${bytes} bytes, expected 1 to ${most}`);
  }
}

/** Gives points that have no colours white ones. */
export function whiten(p: Points): void {
  p.colors.fill(white, 0, 3 * p.count);
}
