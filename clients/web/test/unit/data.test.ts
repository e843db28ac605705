import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DataMessages, DataReceiver } from "../../src/signal/data";
import type { Data } from "../../src/signal/messages";

const numbers = (messages: Data[]): number[] => messages.map((m) => m.seq!);

describe("DataReceiver", () => {
  it("delivers each message once and in order", () => {
    const r = new DataReceiver();
    expect(numbers(r.copied({ seq: 2 }))).toEqual([]);
    expect(numbers(r.copied({ seq: 1 }))).toEqual([1, 2]);
    expect(numbers(r.copied({ seq: 1 }))).toEqual([]);
    expect(numbers(r.ordered({ seq: 1 }))).toEqual([]);
    expect(numbers(r.copied({ seq: 4 }))).toEqual([]);
    expect(numbers(r.copied({ seq: 7 }))).toEqual([]);
    // Messages 3 and 5 were lost while the websocket was broken.
    expect(numbers(r.ordered({ seq: 6 }))).toEqual([4, 6, 7]);
    expect(r.last).toBe(7);
    expect(numbers(r.copied({ seq: 7 + 65 }))).toEqual([]);
  });

  it("takes only newer lossy messages of a topic", () => {
    const r = new DataReceiver();
    const newer = (participant: string, topic: string, seq: number): boolean => r.newer({ participant, topic, seq, lossy: true });
    expect([newer("ada", "hand", 2), newer("ada", "hand", 1), newer("ada", "eye", 1), newer("grace", "hand", 1)]).toEqual([true, false, true, true]);
    r.forget("ada");
    expect(newer("ada", "hand", 1)).toBe(true);
    r.forgetAll();
    expect([newer("ada", "hand", 1), newer("grace", "hand", 1)]).toEqual([true, true]);
  });
});

describe("DataMessages", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  interface Rig {
    sent: (Data & { id: string })[];
    copies: string[];
    got: Data[];
    data: DataMessages;
  }

  function rig(readyState: RTCDataChannelState = "open", bufferedAmount = 0): Rig {
    const sent: Rig["sent"] = [];
    const copies: string[] = [];
    const got: Data[] = [];
    const channel = { readyState, bufferedAmount, send: (text: unknown) => void copies.push(text as string) };
    const data = new DataMessages((m) => sent.push(m) > 0, () => channel, (m) => void got.push(m));
    return { sent, copies, got, data };
  }

  it("sends a message over the websocket, and two copies", async () => {
    const { sent, copies, data } = rig();
    const reply = data.say("chat", "hello");
    vi.advanceTimersByTime(30);
    expect(sent).toEqual([{ type: "data", id: "data/1", seq: 1, topic: "chat", text: "hello" }]);
    expect(copies.map((c) => JSON.parse(c) as Data)).toEqual([sent[0], sent[0]]);
    data.handle({ type: "ok", id: "data/1" });
    expect(await reply).toBeUndefined();
  });

  it.each([["long messages", "x".repeat(1100), "open", 0], ["a closed channel", "x", "connecting", 0], ["a slow channel", "x", "open", 1e5]] as const)("sends no copies of %s", (_, text, state, buffered) => {
    const { sent, copies, data } = rig(state, buffered);
    void data.say("chat", text);
    vi.advanceTimersByTime(30);
    expect([sent.length, copies.length]).toEqual([1, 0]);
  });

  it("reports a refusal", async () => {
    const { data } = rig();
    const reply = data.say("chat", "hello");
    data.handle({ type: "error", id: "data/1", code: "limit", message: "the limit is 50" });
    expect(await reply).toBe("the limit is 50");
  });

  it("repeats what the server has not received after a resume, with the same numbers", async () => {
    const { sent, data } = rig();
    const first = data.say("chat", "a");
    void data.say("chat", "b");
    data.entered(true, 1);
    expect(await first).toBeUndefined();
    expect(sent.map((m) => [m.seq, m.text])).toEqual([[1, "a"], [2, "b"], [2, "b"]]);
  });

  it("numbers anew in a new session", () => {
    const { sent, got, data } = rig();
    data.handle({ type: "data", seq: 5, text: "before" });
    void data.say("chat", "a");
    data.handle({ type: "ok", id: "data/1" });
    void data.say("chat", "b");
    data.entered(false, 0);
    expect(sent.map((m) => [m.seq, m.text])).toEqual([[1, "a"], [2, "b"], [1, "b"]]);
    data.handle({ type: "data", seq: 1, text: "after" });
    expect(got.map((m) => m.text)).toEqual(["before", "after"]);
    expect(data.received).toBe(1);
  });

  it("delivers the first of a copy and a message of the websocket", () => {
    const { got, data } = rig();
    data.copied(JSON.stringify({ type: "data", seq: 1, participant: "ada", text: "x" }));
    expect(data.handle({ type: "data", seq: 1, participant: "ada", text: "x" })).toBe(true);
    data.copied(JSON.stringify({ type: "data", seq: 3, participant: "ada", lossy: true, text: "y" }));
    data.copied(JSON.stringify({ type: "data", seq: 2, participant: "ada", lossy: true, text: "z" }));
    data.copied(JSON.stringify({ type: "closing" }));
    expect(got.map((m) => m.text)).toEqual(["x", "y"]);
  });
});
