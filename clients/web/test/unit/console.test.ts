import { describe, expect, it } from "vitest";
import { ceiling } from "../../src/console/plot";
import { Histories, movedText, type NodeState, Rates, type ReceptionState, type ServerState, type Snapshot, takers, totalsOf, uplinkECN } from "../../src/console/state";

const traffic = (media: number) => ({ packets: 0, media_bytes: media, parity_bytes: media / 10, retransmission_bytes: 0, audio_bytes: 0, probe_bytes: 0 });

function server(second: number, media: number): ServerState {
  return {
    version: "v", started: "2026-11-22T08:00:00Z", now: new Date(Date.UTC(2026, 10, 22, 9, 0, second)).toISOString(), draining: false, goroutines: 1, tracks: 1, slots: 1, active_slots: 1,
    cache_bytes: 1, received: traffic(media), sent: traffic(2 * media), frames: { forwarded: media / 100, dropped_late: 1, dropped_overrun: 0, dropped_budget: second },
    switches: 0, nacks: { received: 0, answered: 0, requested: 0, recovered: 0, delayed: 0, lost: 0 }, residence_p50_ms: 0.2, residence_p99_ms: 1,
  };
}

function snapshot(second: number, reception: Partial<ReceptionState>): Snapshot {
  const full: ReceptionState = {
    known: true, estimate_bps: second, target_bps: 2, wanted_bps: 3, sent_bps: 4, rtt_ms: 5, queue_delay_ms: 6, loss: 0, parity: 0, l4s: "capable", ce_share: 0, viewpoint: true, slots: [], ...reception,
  };
  return { server: server(second, 0), rooms: [{ name: "lab", participants: [{ identity: "eye", joined: "", connected: true, present: true, publications: [], reception: full }] }] };
}

describe("Rates", () => {
  it("measures between two snapshots", () => {
    const rates = new Rates();
    rates.take(server(0, 0));
    expect(rates.receivedBps).toBe(0);
    rates.take(server(2, 1_000_000));
    expect(rates.receivedBps).toBeCloseTo(4_400_000);
    expect(rates.sentBps).toBeCloseTo(8_800_000);
    expect(rates.droppedPerSecond).toBeCloseTo(1);
    expect(rates.parityShare).toBeCloseTo(1 / 11);
  });

  it("begins anew with another server", () => {
    const rates = new Rates();
    rates.take(server(0, 1_000_000));
    rates.take({ ...server(1, 0), started: "2026-11-22T08:59:00Z" });
    expect(rates.receivedBps).toBe(0);
  });
});

describe("totalsOf", () => {
  it("adds up what is published and what is sent to all receivers", () => {
    const [room] = snapshot(0, {}).rooms as [Snapshot["rooms"][number]];
    const [eye] = room.participants as [Snapshot["rooms"][number]["participants"][number]];
    const body = { name: "body", kind: "video", mode: "alternatives", codec: "drco", tiles: 2, qualities: ["low", "high"], rates_bps: [[1, 2], [3, 4]], paused: [] };
    const { reception, ...deaf } = { ...eye, identity: "ada", publications: [body, { ...body, name: "other", rates_bps: [[5]] }] };
    expect(reception).toBeDefined();
    expect(totalsOf({ name: "lab", participants: [eye, { ...eye, identity: "ear" }, deaf] })).toEqual({ published: 15, target: 4, sent: 8 });
  });
});

describe("uplinkECN", () => {
  it("shows marks first, then the most frequent codepoint", () => {
    expect(uplinkECN({ not_ect: 4, ect0: 0, ect1: 990, ce: 10 })).toBe("CE 1.0 %");
    expect(uplinkECN({ not_ect: 4, ect0: 0, ect1: 990, ce: 0 })).toBe("ECT(1)");
    expect(uplinkECN({ not_ect: 4, ect0: 990, ect1: 9, ce: 0 })).toBe("ECT(0)");
    expect(uplinkECN({ not_ect: 990, ect0: 0, ect1: 4, ce: 0 })).toBe("Not-ECT");
  });
});

describe("nodes", () => {
  it("can take participants if they are alive and do not drain", () => {
    const node = (name: string, state: NodeState["state"], draining = false): NodeState => ({ name, state, draining, load: 0, rooms: 0, participants: 0, started: "", beat: "" });
    expect(takers([node("a", "alive"), node("b", "alive", true), node("c", "suspected"), node("d", "dead")])).toEqual(["a"]);
  });

  it("describes the result of a move", () => {
    expect(movedText({ moved: 1, remaining: 0 }, "b")).toBe("1 client sent to node b.");
    expect(movedText({ moved: 2, remaining: 1, failed: [{ node: "c", error: "the node is dead" }] }, "b"))
      .toBe("2 clients sent to node b; 1 client cannot be moved; node c: the node is dead.");
  });
});

describe("Histories", () => {
  it("goes on where the server's own history ends", () => {
    const histories = new Histories();
    const history = [7, 8].map((at) => ({ at, estimate_bps: 1, target_bps: 1, sent_bps: 1, queue_delay_ms: 1 }));
    histories.take(snapshot(10, { history }));
    histories.take(snapshot(11, {}));
    histories.take(snapshot(11, {}));
    histories.take(snapshot(12, { known: false }));
    expect(histories.of("lab", "eye").map((s) => s.estimate_bps)).toEqual([1, 1, 10, 11]);
  });

  it("keeps five minutes, and forgets who has gone", () => {
    const histories = new Histories();
    for (let second = 0; second < 400; second++) {
      histories.take(snapshot(second, {}));
    }
    expect(histories.of("lab", "eye").length).toBe(300);
    histories.take({ server: server(401, 0), rooms: [] });
    expect(histories.of("lab", "eye")).toEqual([]);
  });
});

describe("ceiling", () => {
  it.each([[0, 1], [0.3, 0.5], [1, 1], [1.2, 2], [47, 50], [51, 100], [3e7, 5e7]])("of %d is %d", (value, top) => {
    expect(ceiling(value)).toBeCloseTo(top, 9);
  });
});
