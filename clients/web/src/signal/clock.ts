// The server's clock by the rule of docs/signalling.md: of several requests, the reply with the
// shortest round trip counts, with an error that grows by the drift of clocks.

/**
 * The number of replies kept: after a change of the path, the old ones disappear after this number
 * of requests.
 */
const kept = 16;
/** The resolution of browsers' clocks in microseconds. */
const resolution = 1000;
/** The maximum drift between two crystals of 50 ppm each. */
const drift = 100e-6;

/**
 * One reply, in microseconds. The error of the offset is at most half of the round trip on arrival.
 */
interface Sample {
  at: number;
  ahead: number;
  trip: number;
}

export class ServerClock {
  private samples: Sample[] = [];

  /** Adds a reply: stamps in microseconds, t3 is the arrival by this host's clock. */
  answered(t0: number, t1: number, t2: number, t3: number): void {
    const sample = { at: t3, ahead: (t1 - t0 + (t2 - t3)) / 2, trip: t3 - t0 - (t2 - t1) };
    this.samples.push(sample);
    // Replies that contradict the newest one precede a change: a clock was set, or the browser's clock stood still while
    // the computer slept.
    this.samples = this.samples.filter((s) => Math.abs(s.ahead - sample.ahead) <= this.error(s) + this.error(sample) + resolution);
    if (this.samples.length > kept) {
      this.samples.shift();
    }
  }

  /** Returns the reply with the smallest error at present. */
  private best(): Sample | undefined {
    return this.samples.reduce<Sample | undefined>((a, b) => (a && this.error(a) <= this.error(b) ? a : b), undefined);
  }

  /**
   * Returns the maximum error of a reply's offset at the arrival of the newest reply, in
   * microseconds.
   */
  private error({ at, trip }: Sample): number {
    return trip / 2 + drift * Math.max(0, this.samples.at(-1)!.at - at);
  }

  /**
   * The offset of the server's clock from this host's, in milliseconds; 0 before the first reply.
   */
  get ahead(): number {
    return (this.best()?.ahead ?? 0) / 1000;
  }

  /** The maximum error of that offset for any path, in milliseconds; NaN before the first reply. */
  get bound(): number {
    const best = this.best();
    return best ? this.error(best) / 1000 : NaN;
  }

  /** The round trip to the server in milliseconds, NaN before the first reply. */
  get roundTrip(): number {
    const best = this.best();
    return best ? best.trip / 1000 : NaN;
  }
}

/** Returns this host's clock in microseconds since 1970, with the browser's resolution. */
export function nowMicroseconds(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1000);
}
