// The server's clock, by the rule of docs/signalling.md: of several questions the answer with the shortest round trip counts.

/** Answers that are remembered: a change of path is forgotten after as many questions. */
const kept = 16;

export class ServerClock {
  private samples: { ahead: number; trip: number }[] = [];

  /** Takes an answer: stamps in microseconds, t3 is when it arrived by this host's clock. */
  answered(t0: number, t1: number, t2: number, t3: number): void {
    this.samples.push({ ahead: (t1 - t0 + (t2 - t3)) / 2, trip: t3 - t0 - (t2 - t1) });
    if (this.samples.length > kept) {
      this.samples.shift();
    }
  }

  private best(): { ahead: number; trip: number } | undefined {
    return this.samples.reduce<{ ahead: number; trip: number } | undefined>((a, b) => (a && a.trip <= b.trip ? a : b), undefined);
  }

  /** How far the server's clock is ahead of this host's, in milliseconds; 0 before the first answer. */
  get ahead(): number {
    return (this.best()?.ahead ?? 0) / 1000;
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
