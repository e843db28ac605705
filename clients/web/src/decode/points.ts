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

/** Makes points of a frame. All errors are DecodeErrors that say what is wrong and what was expected. */
export interface Decoder {
  /** Gives the number of points that a frame announces, once boundPoints allows as many. It reads the head alone: nothing is allocated for the points. */
  announced(data: Uint8Array): number;
  decode(data: Uint8Array, pool: PointPool): Points | Promise<Points>;
}

const white = 255;

/** The most points of a frame: 4,194,304 of 15 bytes each are 63 MB. */
const maxPoints = 1 << 22;
/** What a frame may hold whatever its size, and for each of its bytes: points that coincide cost next to nothing (docs/codec.md, "Bounds"). */
const freePoints = 65_536;
const pointsPerByte = 64;

/** Checks the number of points that a frame of so many bytes announces, and gives it. It is called before anything is allocated for the points. */
export function boundPoints(codec: string, count: number, bytes: number): number {
  const most = Math.min(maxPoints, freePoints + pointsPerByte * bytes);
  if (count < 1 || count > most) {
    throw new DecodeError(`${codec}: ${count} points in ${bytes} bytes, expected 1 to ${most}`);
  }
  return count;
}

/** Gives points that have no colours white ones. */
export function whiten(p: Points): void {
  p.colors.fill(white, 0, 3 * p.count);
}
