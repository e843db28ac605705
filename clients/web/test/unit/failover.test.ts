// The transcripts that the Go client passes, too.

import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { attemptTime, Refusals } from "../../src/signal/refusals";
import { Silence } from "../../src/signal/silence";

interface Step {
  rtt?: number;
  returned?: boolean;
  at: number;
  received: number;
  expected: boolean;
  several: boolean;
  verdict: string;
}

interface Transcripts {
  silence: { name: string; steps: Step[] }[];
  rounds: { name: string; servers: number; attempts: { code?: string; retry_after_ms?: number }[]; ended: boolean; wait_ms: number }[];
  attempts: { rtt_ms: number; limit_ms: number }[];
}

const file = new URL("../../../../pkg/client/testdata/failover.json", import.meta.url);
const { silence, rounds, attempts } = JSON.parse((await readFile(file)).toString()) as Transcripts;

describe("Silence", () => {
  it.each(silence)("judges a server: $name", ({ steps }) => {
    const s = new Silence();
    steps.forEach(({ rtt, returned, at, received, expected, several, verdict }, i) => {
      if (rtt !== undefined) {
        s.measured(rtt);
      } else if (returned) {
        s.returned();
      } else {
        expect([i, s.step(at, received, expected, several)]).toEqual([i, verdict]);
      }
    });
  });
});

describe("Refusals", () => {
  it.each(rounds)("judges a round: $name", (round) => {
    const refusals = new Refusals(round.servers > 1);
    let ended = false;
    for (const { code, retry_after_ms } of round.attempts) {
      ended ||= refusals.add(code, retry_after_ms);
    }
    expect([ended || refusals.all, refusals.wait]).toEqual([round.ended, round.wait_ms]);
  });

  it.each(attempts)("limits an attempt over $rtt_ms ms", ({ rtt_ms, limit_ms }) => {
    expect(attemptTime(rtt_ms)).toBe(limit_ms);
  });
});
