import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ServerClock } from "../../src/signal/clock";
import { Session, type SessionState } from "../../src/signal/session";
import { claimsOf } from "../../src/token";
import { FakeSocket, joined } from "./socket";

describe("Session", () => {
  let states: [SessionState, string][];
  let renewed: boolean[];
  let live: boolean;

  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("WebSocket", FakeSocket);
    FakeSocket.all = [];
    states = [];
    renewed = [];
    live = true;
  });
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  const begin = (): Session => {
    const session = new Session(
      { url: "ws://host/v1/signal", token: "t0ken", room: "lab", identity: "ada" },
      { joined: (_, anew) => renewed.push(anew), message: () => {}, state: (state, why) => states.push([state, why]), connected: () => live, received: () => 7 },
    );
    session.start();
    return session;
  };
  const last = (): FakeSocket => FakeSocket.all.at(-1)!;

  it("joins with its token, and asks for the time", () => {
    begin();
    last().open();
    expect(last().url.searchParams.get("access_token")).toBe("t0ken");
    expect(last().sent[0]).toEqual({
      type: "join", id: "join", version: 1, receive: true, data_channel: true, pauses: true, message_channel: true, room: "lab", identity: "ada",
    });
    last().say(joined);
    expect(states.at(-1)).toEqual(["joined", ""]);
    expect(last().sent[1]).toMatchObject({ type: "time" });
  });

  it("resumes with its secret when the websocket breaks", () => {
    begin();
    last().open();
    last().say(joined);
    live = false;
    last().close();
    expect(states.at(-1)?.[0]).toBe("resuming");
    vi.advanceTimersByTime(300);
    expect(FakeSocket.all.length).toBe(2);
    last().open();
    expect(last().sent[0]).toMatchObject({ resume: { session: "s1", secret: "secret", new_connection: true, data_received: 7 } });
    last().say({ ...joined, resumed: true });
    expect(states.at(-1)?.[0]).toBe("joined");
  });

  it.each([true, false])("goes on with what it asked for, whatever becomes of the connection meanwhile (alive at first: %s)", (alive) => {
    begin();
    last().open();
    last().say(joined);
    last().close();
    vi.advanceTimersByTime(300);
    live = alive;
    last().open();
    live = !alive;
    last().say({ ...joined, resumed: true });
    expect(last().sent[0]).toMatchObject({ resume: { new_connection: !alive } });
    expect(renewed).toEqual([true, !alive]);
  });

  it("begins anew where its session is over", () => {
    begin();
    last().open();
    last().say(joined);
    last().close();
    vi.advanceTimersByTime(300);
    last().open();
    last().say({ type: "error", id: "join", code: "resume", message: "the session is over" });
    expect(last().sent.at(-1)).not.toHaveProperty("resume");
    last().say(joined);
    expect(states.at(-1)?.[0]).toBe("joined");
  });

  it("does not resume after the time of grace", () => {
    begin();
    last().open();
    last().say(joined);
    last().close();
    for (let waited = 0; waited < 35_000; waited += 1000) {
      vi.advanceTimersByTime(1000);
      if (last().readyState === 0) {
        last().close();
      }
    }
    vi.advanceTimersByTime(6000);
    last().open();
    expect(last().sent[0]).not.toHaveProperty("resume");
  });

  it("stays away when an operator has sent it away", () => {
    begin();
    last().open();
    last().say(joined);
    last().say({ type: "closing", code: "kicked", message: "removed by an operator" });
    expect(states.at(-1)).toEqual(["closed", "removed by an operator"]);
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.all.length).toBe(1);
  });

  it("comes again when there were too many joins, and stays away when it has said too much", () => {
    begin();
    last().open();
    last().say({ type: "closing", code: "rate_limited", message: "50 joins per second are the limit" });
    last().close();
    vi.advanceTimersByTime(6000);
    expect(FakeSocket.all.length).toBe(2);
    last().open();
    last().say(joined);
    last().say({ type: "closing", code: "rate_limited", message: "400 messages per second are the limit" });
    expect(states.at(-1)).toEqual(["closed", "400 messages per second are the limit"]);
  });

  it("says why it was not let in", () => {
    begin();
    last().open();
    last().say({ type: "error", id: "join", code: "identity_taken", message: '"ada" is in the room' });
    expect(states.at(-1)).toEqual(["closed", '"ada" is in the room']);
  });

  it("notices a websocket that has gone silent, and resumes", () => {
    begin();
    last().open();
    last().say(joined);
    vi.advanceTimersByTime(9000);
    last().say({ type: "time_reply", id: "time", t0_us: 0, t1_us: 0, t2_us: 0 });
    vi.advanceTimersByTime(9000);
    expect(FakeSocket.all.length).toBe(1);
    const silent = last();
    vi.advanceTimersByTime(4000);
    expect(silent.readyState).toBe(3);
    expect(states.at(-1)).toEqual(["resuming", "the server does not answer"]);
    expect(FakeSocket.all.length).toBe(2);
    last().open();
    expect(last().sent[0]).toMatchObject({ resume: { session: "s1" } });
  });

  it("comes again where a server is about to stop", () => {
    begin();
    last().open();
    last().say({ type: "error", id: "join", code: "draining", message: "the server stops" });
    expect(states.at(-1)?.[0]).toBe("connecting");
    vi.advanceTimersByTime(300);
    last().open();
    last().say(joined);
    expect(states.at(-1)?.[0]).toBe("joined");
  });

  it("gives up a server that is not there", () => {
    begin();
    for (let i = 0; i < 20; i++) {
      if (last().readyState === 0) {
        last().close();
      }
      vi.advanceTimersByTime(10_000);
    }
    expect(states.at(-1)?.[0]).toBe("closed");
  });
});

describe("ServerClock", () => {
  it("believes the answer with the shortest round trip", () => {
    const clock = new ServerClock();
    expect(clock.ahead).toBe(0);
    expect(clock.roundTrip).toBeNaN();
    // The server is 5 s ahead; the return path of the first reply was slow.
    clock.answered(0, 5_010_000, 5_010_000, 120_000);
    clock.answered(1_000_000, 6_010_000, 6_011_000, 1_021_000);
    expect(clock.ahead).toBeCloseTo(5000, 3);
    expect(clock.roundTrip).toBeCloseTo(20, 3);
  });
});

describe("claimsOf", () => {
  const token = (payload: object): string => `x.${btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(payload)))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}.y`;

  it("reads names, of any letters", () => {
    expect(claimsOf(token({ sub: "Grüße", room: "lab" }))).toEqual({ identity: "Grüße", room: "lab" });
  });

  it.each(["", "nonsense", "a.b.c", token({ sub: 7 })])("finds none in %j", (t) => {
    expect(claimsOf(t)).toEqual({ identity: "", room: "" });
  });
});
