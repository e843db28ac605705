// Detects a server that neither sends nor replies. The rules are those of the Go client
// (pkg/client/internal/failover), and so are the transcripts (pkg/client/testdata/failover.json). All times
// are in milliseconds.

/**
 * The time without a frame or a message, while media is expected and while it is not, after which the
 * server is asked for a reply.
 */
const silentAfter = 600;
const quietAfter = 2500;
/** The least times after which the session then resumes on another server. */
const replyWithin = 300;
const quietReplyWithin = 1000;
/** Bounds the factor by which the time for a reply grows. */
const maxPatience = 32;
/** A step that comes so long after the one before is late: messages may wait to be read. */
const lateStep = 1500;

/** Media is expected for this time after a frame. */
export const expectMedia = 10_000;
/** The time between two steps. Browsers step pages in the background once per second. */
export const silenceInterval = 100;

/** "ask": the server is asked for a reply. "leave": the session resumes on another server. */
export type Verdict = "none" | "ask" | "leave";

export class Silence {
  /** The smoothed round-trip time of the websocket and its mean deviation (RFC 6298). */
  rtt = 0;
  private deviation = 0;
  private patience = 1;
  private asked: number | undefined;
  /** A late step has repeated the question. */
  private repeated = false;
  private stepped: number | undefined;

  /** Adds a round-trip time of the websocket. */
  measured(rtt: number): void {
    if (rtt < 0) {
      return;
    }
    if (this.rtt === 0) {
      [this.rtt, this.deviation] = [rtt, rtt / 2];
      return;
    }
    this.deviation += (Math.abs(this.rtt - rtt) - this.deviation) / 4;
    this.rtt += (rtt - this.rtt) / 8;
  }

  /** Records that the session has returned to the server that it had left: the server was alive. */
  returned(): void {
    this.patience = Math.min(2 * this.patience, maxPatience);
  }

  /**
   * @param received the time when something has arrived last
   * @param expected media is expected
   * @param several there is another server
   */
  step(now: number, received: number, expected: boolean, several: boolean): Verdict {
    const late = this.stepped !== undefined && now - this.stepped > lateStep;
    this.stepped = now;
    if (!several || now - received < (expected ? silentAfter : quietAfter)) {
      this.asked = undefined;
      this.repeated = false;
      return "none";
    }
    if (this.asked === undefined || (late && !this.repeated)) {
      this.repeated ||= this.asked !== undefined;
      this.asked = now;
      return "ask";
    }
    const least = expected ? replyWithin : quietReplyWithin;
    if (now - this.asked < Math.max(least, 2 * this.rtt + 4 * this.deviation) * this.patience) {
      return "none";
    }
    this.asked = undefined;
    this.repeated = false;
    return "leave";
  }
}
