// The server's clock, by the rule of docs/signalling.md: of several questions the answer with the shortest round trip counts, aged by what clocks drift apart.

/** Answers that are remembered: a change of path is forgotten after as many questions. */
const kept = 16;
/** Two crystals of 50 ppm each drift apart so fast at worst. */
const drift = 100e-6;

/** One answer, in microseconds. The offset is off by half of the round trip at most, when it is heard. */
interface Sample {
  at: number;
  ahead: number;
  trip: number;
}

export class ServerClock {
  private samples: Sample[] = [];

  /** Takes an answer: stamps in microseconds, t3 is when it arrived by this host's clock. */
  answered(t0: number, t1: number, t2: number, t3: number): void {
    this.samples.push({ at: t3, ahead: (t1 - t0 + (t2 - t3)) / 2, trip: t3 - t0 - (t2 - t1) });
    if (this.samples.length > kept) {
      this.samples.shift();
    }
  }

  /** The answer that says most by now. */
  private best(): Sample | undefined {
    return this.samples.reduce<Sample | undefined>((a, b) => (a && this.error(a) <= this.error(b) ? a : b), undefined);
  }

  /** How far the offset of an answer may be off by when the newest one came, in microseconds. */
  private error({ at, trip }: Sample): number {
    return trip / 2 + drift * Math.max(0, this.samples.at(-1)!.at - at);
  }

  /** How far the server's clock is ahead of this host's, in milliseconds; 0 before the first answer. */
  get ahead(): number {
    return (this.best()?.ahead ?? 0) / 1000;
  }

  /** How far that may be off at most, whatever the path, in milliseconds; NaN before the first answer. */
  get bound(): number {
    const best = this.best();
    return best ? this.error(best) / 1000 : NaN;
  }

  /** The round trip to the server in milliseconds, NaN before the first answer. */
  get roundTrip(): number {
    const best = this.best();
    return best ? best.trip / 1000 : NaN;
  }
}

/** This host's clock in microseconds since 1970, as fine as the browser lets it be read. */
export function nowMicroseconds(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1000);
}
