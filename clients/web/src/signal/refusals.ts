// Judges the replies to the attempts of one round to resume a session. The rules are those of the Go
// client (pkg/client/internal/failover), and so are the transcripts (pkg/client/testdata/failover.json).

/** Bounds the wait that servers ask for, in milliseconds. */
const maxRetryAfter = 10_000;
/** The codes about the client: other servers would refuse, too. */
const final = new Set(["kicked", "revoked", "closed", "replaced"]);

/**
 * The limit of an attempt of the first round if there are several servers, in milliseconds: TCP, TLS
 * 1.3, the upgrade and the join take four round trips, TLS 1.2 one more, and TCP repeats a lost SYN
 * after one second.
 */
export function attemptTime(rtt: number): number {
  return Math.max(1200, 1000 + 5 * rtt);
}

/** Returns the wait that a server asks for, bounded. */
export function waitOf(retryAfter: number | undefined): number {
  return Math.min(retryAfter ?? 0, maxRetryAfter);
}

export class Refusals {
  private attempts = 0;
  private refused = 0;
  /** The least time until the next round. */
  wait = 0;

  /** @param several the round has more than one server */
  constructor(private readonly several: boolean) {}

  /**
   * Adds an attempt that failed, with the code of the refusal if the server replied. Returns true if
   * the session has ended.
   */
  add(code?: string, retryAfter?: number): boolean {
    this.attempts++;
    if (code === undefined) {
      return false;
    }
    if (retryAfter) {
      this.wait = Math.max(this.wait, waitOf(retryAfter));
      return false;
    }
    if (final.has(code)) {
      return true;
    }
    if (code !== "draining" || !this.several) {
      this.refused++;
    }
    return false;
  }

  /** Reports whether every server of the round has refused the session. */
  get all(): boolean {
    return this.refused === this.attempts;
  }
}
