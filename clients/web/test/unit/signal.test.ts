import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ServerClock } from "../../src/signal/clock";
import { Servers } from "../../src/signal/servers";
import { Session, type SessionState } from "../../src/signal/session";
import { claimsOf } from "../../src/token";
import { FakeSocket, joined } from "./socket";

describe("Session", () => {
  let states: [SessionState, string][];
  let renewed: boolean[];
  let live: boolean;
  let media: number;

  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("WebSocket", FakeSocket);
    FakeSocket.all = [];
    states = [];
    renewed = [];
    live = true;
    media = 0;
  });
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  const begin = (): Session => {
    const session = new Session(
      { url: "ws://host/v1/signal", token: "t0ken", room: "lab", identity: "ada" },
      { joined: (_, anew) => renewed.push(anew), message: () => {}, state: (state, why) => states.push([state, why]), connected: () => live, received: () => 7, mediaReceived: () => media },
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
      type: "join", id: "join", version: 1, receive: true, data_channel: true, pauses: true, message_channel: true, moves: true, room: "lab", identity: "ada",
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

  it.each([
    [undefined, "The server host cannot be reached."],
    ["http://host", "The server host cannot be reached."],
    ["https://shop.example", "The server host cannot be reached, or does not accept pages of the origin https://shop.example: signalling.allowed_origins in its configuration lists the accepted ones."],
  ])("says that no server answers a page of the origin %s", (origin, sentence) => {
    vi.stubGlobal("location", origin === undefined ? undefined : new URL(origin));
    begin();
    for (let attempts = 0; attempts < 8; attempts++) {
      last().close();
      vi.advanceTimersByTime(10_000);
    }
    expect(states.at(-1)).toEqual(["closed", sentence]);
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

  const far = { type: "moved", id: "join", url: "wss://far.example.org", ticket: "t1cket" } as const;

  it("joins on the server to which it is sent", () => {
    begin();
    last().open();
    const entry = last();
    last().say(far);
    expect(entry.readyState).toBe(3);
    expect(last().url.href).toBe("wss://far.example.org/v1/signal?access_token=t0ken");
    last().open();
    expect(last().sent[0]).toMatchObject({ type: "join", ticket: "t1cket", moves: true });
    last().say(joined);
    expect(states.at(-1)?.[0]).toBe("joined");
    // The session is there, and its ticket is the secret of the reply.
    live = false;
    last().close();
    vi.advanceTimersByTime(300);
    expect(last().url.host).toBe("far.example.org");
    last().open();
    expect(last().sent[0]).toMatchObject({ resume: { secret: "secret" } });
    expect(last().sent[0]).not.toHaveProperty("ticket");
  });

  it("asks the first server again when the other is not there", () => {
    begin();
    last().open();
    last().say(far);
    last().close();
    vi.advanceTimersByTime(300);
    expect(last().url.host).toBe("host");
    last().open();
    expect(last().sent[0]).not.toHaveProperty("ticket");
  });

  it("does not follow for ever", () => {
    begin();
    for (let i = 0; i < 8; i++) {
      last().open();
      last().say(far);
    }
    last().open();
    const count = FakeSocket.all.length;
    last().say(far);
    expect(FakeSocket.all.length).toBe(count);
    vi.advanceTimersByTime(300);
    expect(last().url.host).toBe("host");
  });

  it("continues the session on the server to which it is sent, with a new connection", () => {
    begin();
    last().open();
    last().say(joined);
    last().say({ type: "moved", url: "ws://next:7880", ticket: "t1cket", deadline_ms: 20_000 });
    expect(states.at(-1)?.[0]).toBe("resuming");
    expect(last().url.href).toBe("ws://next:7880/v1/signal?access_token=t0ken");
    last().open();
    expect(last().sent[0]).toMatchObject({ resume: { session: "s1", secret: "t1cket", new_connection: true } });
    last().say({ ...joined, resumed: true });
    expect(renewed).toEqual([true, true]);
  });

  describe("with a server that sends it to another one beside the present one", () => {
    let told: string[];
    let session: Session;
    const beside = { type: "moved", url: "ws://next", ticket: "t1cket", deadline_ms: 20_000, make_before_break: true } as const;
    const first = (): FakeSocket => FakeSocket.all[0]!;

    beforeEach(() => {
      told = [];
      session = new Session({ url: "ws://host/v1/signal", room: "lab", identity: "ada" }, {
        joined: (_, anew) => told.push(`joined ${anew}`), moved: (_, limit) => told.push(`moved ${limit}`), former: ({ type }) => told.push(`former ${type}`), message: ({ type }) => told.push(type),
        state: (state) => states.push([state, ""]), connected: () => live, received: () => 7,
      });
      session.start();
      first().open();
      first().say({ ...joined, nodes: [{ url: "ws://spare" }] });
      told = [];
    });

    it("joins there, and then sends there only", () => {
      first().say(beside);
      expect(last().url.host).toBe("next");
      expect(first().readyState).toBe(1);
      vi.advanceTimersByTime(100);
      session.send({ type: "mute", publication: "voice", muted: true });
      expect(first().sent.at(-1)).toMatchObject({ type: "mute" });
      last().open();
      expect(last().sent[0]).toMatchObject({ resume: { session: "s1", secret: "t1cket", new_connection: true, data_received: 7 } });
      last().say({ ...joined, resumed: true });
      session.send({ type: "mute", publication: "voice", muted: false });
      expect(last().sent.at(-1)).toMatchObject({ type: "mute", muted: false });
      session.sendFormer({ type: "answer", offer: 1, sdp: "" });
      expect(first().sent.at(-1)).toMatchObject({ type: "answer" });
      first().say({ type: "recording", active: true });
      last().say({ type: "recording", active: true });
      expect(told).toEqual(["moved 19900", "former recording", "recording"]);
      session.retire();
      session.sendFormer({ type: "answer", offer: 2, sdp: "" });
      expect([first().readyState, first().sent.at(-1)]).toMatchObject([3, { type: "answer", offer: 1 }]);
      expect(states.map(([state]) => state)).toEqual(["joined"]);
      // The session is there.
      last().close();
      vi.advanceTimersByTime(300);
      expect(last().url.host).toBe("next");
    });

    it("follows on, and resumes with the ticket if the servers refuse", () => {
      first().say(beside);
      last().open();
      last().say({ type: "moved", id: "join", url: "ws://third", ticket: "another" });
      expect(last().url.host).toBe("third");
      last().open();
      expect(last().sent[0]).toMatchObject({ resume: { secret: "another", new_connection: true } });
      last().say({ type: "error", id: "join", code: "resume", message: "no such session" });
      expect(states.at(-1)?.[0]).toBe("resuming");
      expect([first().readyState, last().url.host]).toEqual([3, "next"]);
      last().open();
      expect(last().sent[0]).toMatchObject({ resume: { secret: "t1cket", new_connection: true } });
      last().say({ ...joined, resumed: true });
      expect(told).toEqual(["joined true"]);
    });

    it("resumes if the other server does not answer within the time", () => {
      first().say({ ...beside, deadline_ms: 3000 });
      vi.advanceTimersByTime(2999);
      expect(states.at(-1)?.[0]).toBe("joined");
      vi.advanceTimersByTime(1);
      expect(states.at(-1)?.[0]).toBe("resuming");
    });

    it("ignores an address to which it must not connect", () => {
      const count = FakeSocket.all.length;
      first().say({ ...beside, url: "http://next" });
      expect([FakeSocket.all.length, first().readyState, states.at(-1)?.[0]]).toEqual([count, 1, "joined"]);
    });

    it("waits for the result if the first server ends the websocket meanwhile", () => {
      first().say(beside);
      first().say({ type: "closing", code: "replaced", message: "the session is on another server" });
      first().close();
      expect(states.at(-1)?.[0]).toBe("joined");
      last().open();
      last().say({ ...joined, resumed: true });
      expect(told).toEqual([expect.stringMatching("^moved")]);
      session.sendFormer({ type: "answer", offer: 1, sdp: "" });
    });

    it("has a new connection only there if it has none", () => {
      live = false;
      first().say(beside);
      expect(states.at(-1)?.[0]).toBe("resuming");
      expect(first().readyState).toBe(3);
    });

    it("ends the attempt when it leaves", () => {
      first().say(beside);
      session.leave();
      expect(last().readyState).toBe(3);
      expect(states.at(-1)?.[0]).toBe("closed");
    });
  });

  it("keeps its question about the connection when it is sent on", () => {
    begin();
    last().open();
    last().say({ ...joined, nodes: [{ url: "ws://a" }] });
    last().close();
    vi.advanceTimersByTime(1);
    last().close();
    vi.advanceTimersByTime(1);
    last().open();
    expect(last().sent[0]).toMatchObject({ resume: { new_connection: true } });
    last().say({ type: "moved", id: "join", url: "ws://b", ticket: "t1cket" });
    last().open();
    expect(last().sent[0]).toMatchObject({ resume: { secret: "t1cket", new_connection: true } });
  });

  it("reads a reply whose lists are null", () => {
    const seen: object[] = [];
    const session = new Session({ url: "ws://host/v1/signal" }, { joined: ({ ice_servers, participants }) => seen.push({ ice_servers, participants }), message: () => {}, state: () => {}, connected: () => true, received: () => 0 });
    session.start();
    last().open();
    last().say({ ...joined, ice_servers: null, participants: null, nodes: null } as unknown as typeof joined);
    last().say({ ...joined, participants: [{ identity: "ada", publications: null }] } as unknown as typeof joined);
    expect(seen).toEqual([{ ice_servers: [], participants: [] }, { ice_servers: [], participants: [{ identity: "ada", publications: [] }] }]);
    session.leave();
  });

  it("goes on at the next server if its own is gone", () => {
    begin();
    last().open();
    last().say({ ...joined, nodes: [{ url: "ws://old" }] });
    last().say({ type: "nodes", nodes: [{ url: "ws://a" }, { url: "http://no" }, { url: "ws://b", region: "eu" }] });
    last().close();
    const tried = [];
    for (let i = 0; i < 3; i++) {
      vi.advanceTimersByTime(1);
      tried.push(last().url.host);
      if (i < 2) {
        last().close();
      }
    }
    expect(tried).toEqual(["host", "a", "b"]);
    last().open();
    expect(last().sent[0]).toMatchObject({ resume: { secret: "secret", new_connection: true } });
    // The session's server lives, and so does the peer connection.
    last().say({ type: "moved", id: "join", url: "ws://host", ticket: "t1cket" });
    last().open();
    expect(last().sent[0]).toMatchObject({ resume: { secret: "t1cket", new_connection: false } });
  });

  it("resumes with the last secret that the server has given", () => {
    begin();
    last().open();
    last().say(joined);
    last().say({ type: "nodes", nodes: [], secret: "newer" });
    last().say({ type: "nodes", nodes: [] });
    last().close();
    vi.advanceTimersByTime(300);
    last().open();
    expect(last().sent[0]).toMatchObject({ resume: { session: "s1", secret: "newer" } });
  });

  it("does not wait long for one of several servers", () => {
    begin();
    last().open();
    last().say({ ...joined, nodes: [{ url: "ws://a" }] });
    last().close();
    vi.advanceTimersByTime(1);
    expect(last().url.host).toBe("host");
    vi.advanceTimersByTime(1201);
    expect(last().url.host).toBe("a");
  });

  it("leaves a server that sends no frames and does not reply, and gives it more time if it was alive", () => {
    begin();
    last().open();
    last().say({ ...joined, nodes: [{ url: "ws://a" }] });
    for (let i = 0; i < 100; i++) {
      media = Date.now();
      vi.advanceTimersByTime(100);
    }
    expect(FakeSocket.all.length).toBe(1);
    const count = last().sent.length;
    vi.advanceTimersByTime(600);
    expect(last().sent.slice(count).some((m) => m.type === "time")).toBe(true);
    vi.advanceTimersByTime(200);
    expect(FakeSocket.all.length).toBe(1);
    vi.advanceTimersByTime(201);
    expect(last().url.host).toBe("a");
    last().open();
    expect(last().sent[0]).toMatchObject({ resume: { secret: "secret", new_connection: true } });
    last().say({ type: "moved", id: "join", url: "ws://host", ticket: "t1cket" });
    last().open();
    last().say({ ...joined, resumed: true, nodes: [{ url: "ws://a" }] });
    media = Date.now();
    vi.advanceTimersByTime(1100);
    expect(last().url.host).toBe("host");
    vi.advanceTimersByTime(300);
    expect(last().url.host).toBe("a");
  });

  it("asks a server in a quiet room", () => {
    begin();
    last().open();
    last().say({ ...joined, nodes: [{ url: "ws://a" }] });
    vi.advanceTimersByTime(3000);
    expect(last().url.host).toBe("host");
    vi.advanceTimersByTime(1000);
    expect(last().url.host).toBe("a");
  });

  const no = { type: "error", id: "join", code: "unauthorized", message: "other keys" } as const;

  it("does not end the session because one server refuses", () => {
    begin();
    last().open();
    last().say({ ...joined, nodes: [{ url: "ws://a" }, { url: "ws://b" }] });
    last().close();
    vi.advanceTimersByTime(1);
    last().close();
    vi.advanceTimersByTime(1);
    expect(last().url.host).toBe("a");
    last().open();
    last().say(no);
    vi.advanceTimersByTime(1);
    expect(last().url.host).toBe("b");
    last().open();
    last().say({ ...joined, resumed: true });
    expect(states.at(-1)?.[0]).toBe("joined");
  });

  it("ends if all servers refuse the session", () => {
    begin();
    last().open();
    last().say({ ...joined, nodes: [{ url: "ws://a" }] });
    last().close();
    for (const host of ["host", "a"]) {
      vi.advanceTimersByTime(1);
      expect(last().url.host).toBe(host);
      last().open();
      last().say(no);
    }
    expect(states.at(-1)).toEqual(["closed", "other keys"]);
  });

  it.each([false, true])("waits as long as the server asks (in the room before: %s)", (before) => {
    begin();
    if (before) {
      last().open();
      last().say(joined);
      last().close();
      vi.advanceTimersByTime(300);
    }
    last().open();
    last().say({ type: "error", id: "join", code: "limit", message: "all nodes are full", retry_after_ms: 3000 });
    const count = FakeSocket.all.length;
    vi.advanceTimersByTime(2999);
    expect(FakeSocket.all.length).toBe(count);
    vi.advanceTimersByTime(1);
    last().open();
    last().say(joined);
    expect(states.at(-1)?.[0]).toBe("joined");
  });

  it("follows again after a server that was not there", () => {
    begin();
    last().open();
    last().say(joined);
    last().close();
    for (let round = 0; round < 4; round++) {
      vi.advanceTimersByTime(5000);
      for (let move = 0; move < 3; move++) {
        last().open();
        last().say({ ...far, url: `ws://node${round}${move}` });
        expect(last().url.host).toBe(`node${round}${move}`);
      }
      last().close();
    }
  });

  it("makes a new connection when the server has none", () => {
    begin();
    last().open();
    last().say(joined);
    last().say({ type: "closing", code: "connection", message: "the session is on another server" });
    last().close();
    vi.advanceTimersByTime(300);
    last().open();
    expect(last().sent[0]).toMatchObject({ resume: { new_connection: true } });
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

  it("forgets the replies from before this computer slept, while the browser's clock stood still", () => {
    const clock = new ServerClock();
    clock.answered(0, 10_000, 10_000, 20_000);
    const hour = 3600e6;
    clock.answered(1_000_000, hour + 1_050_000, hour + 1_050_000, 1_100_000);
    expect([clock.ahead, clock.roundTrip]).toEqual([hour / 1000, 100]);
    clock.answered(2_000_000, hour + 2_010_000, hour + 2_010_000, 2_020_000);
    expect([clock.ahead, clock.roundTrip]).toEqual([hour / 1000, 20]);
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

describe("Servers", () => {
  it("does not leave TLS", () => {
    const servers = new Servers("wss://host/v1/signal");
    expect(["ws://a", "https://a", "nonsense", "wss://a:7/x?y#z"].map((url) => servers.visit(url))).toEqual([false, false, false, true]);
    expect(servers.target).toBe("wss://a:7/v1/signal");
  });

  it("tries a silent server last, and remembers a bounded number", () => {
    const servers = new Servers("ws://host/v1/signal");
    servers.set(Array.from({ length: 100 }, (_, i) => ({ url: `ws://node${i}` })));
    const round = [];
    while (servers.next(round.length === 0, true)) {
      round.push(new URL(servers.target).host);
    }
    expect(round.length).toBe(65);
    expect(round.slice(-2)).toEqual(["node63", "host"]);
  });
});
