import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Workers } from "../../src/media/connection";
import type { DecodedFrame } from "../../src/media/traffic";
import type { Assignment, Participant, TileRef } from "../../src/signal/messages";
import { Conference } from "../../src/viewer/conference";
import { Duplicates, Move } from "../../src/viewer/move";
import { nowMicroseconds } from "../../src/signal/clock";
import { FakeSocket, joined } from "./socket";

describe("Move", () => {
  const both = { connected: true, sending: false };

  it("leaves the former server when all its tiles come over the second connection, after a while", () => {
    const move = new Move(20_000);
    move.arrived("a", true, 100);
    move.arrived("b", true, 100);
    move.arrived("a", false, 150);
    expect(move.step(200, both)).toBe("wait");
    move.arrived("b", false, 300);
    expect(move.step(400, both)).toBe("wait");
    expect(move.step(699, both)).toBe("wait");
    expect(move.step(700, both)).toBe("leave");
  });

  it("does not wait for a tile that has ended, nor longer than two seconds for one that does not come", () => {
    const ended = new Move(20_000);
    ended.arrived("a", true, 100);
    expect([ended.step(1099, both), ended.step(1100, both), ended.step(1400, both)]).toEqual(["wait", "wait", "leave"]);
    const missing = new Move(20_000);
    for (let now = 0; now <= 2000; now += 100) {
      missing.arrived("a", true, now);
      expect(missing.step(now, both)).toBe("wait");
    }
    expect(missing.step(2001, both)).toBe("leave");
  });

  it("waits for the media of this page until the deadline", () => {
    const move = new Move(20_000);
    const sending = { connected: true, sending: true };
    expect([move.step(0, sending), move.step(10_000, sending), move.step(20_001, sending)]).toEqual(["wait", "wait", "leave"]);
  });

  it("fails once if the second connection is not established until the deadline", () => {
    const move = new Move(20_000);
    const none = { connected: false, sending: true };
    expect([move.step(20_000, none), move.step(20_001, none), move.step(20_100, none)]).toEqual(["wait", "fail", "wait"]);
    expect(move.step(20_200, both)).toBe("leave");
  });
});

describe("Duplicates", () => {
  it("passes each frame of a tile once and in order, and returns the late ones", () => {
    const duplicates = new Duplicates();
    const results = [1, 2, 2, 5, 3, 6, 5].map((number) => duplicates.add("ada\nbody\n0", number));
    expect(results).toEqual([[], [], undefined, [], undefined, [3], undefined]);
    expect(duplicates.add("ada\nbody\n1", 1)).toEqual([]);
  });

  it("forgets a publication, whose numbers begin again", () => {
    const duplicates = new Duplicates();
    duplicates.add("ada\nbody\n0", 50);
    duplicates.add("ada\nbody2\n0", 50);
    duplicates.restart("ada\nbody\n");
    expect([duplicates.add("ada\nbody\n0", 1), duplicates.add("ada\nbody2\n0", 1)]).toEqual([[], undefined]);
  });

  it("passes no frame again at an assignment, over whatever connection", () => {
    const duplicates = new Duplicates();
    duplicates.assigned("a");
    duplicates.add("a", 50);
    for (let slots = 0; slots < 2; slots++) {
      duplicates.assigned("a");
      expect(duplicates.add("a", 50)).toBeUndefined();
    }
  });

  it("begins again at the first assignment after a restart: frames of the former publication were on the way", () => {
    const duplicates = new Duplicates();
    duplicates.assigned("a");
    duplicates.add("a", 50);
    duplicates.restart("a");
    expect(duplicates.add("a", 51)).toEqual([]);
    duplicates.assigned("a");
    expect([duplicates.add("a", 1), duplicates.add("a", 2)]).toEqual([[], []]);
    duplicates.assigned("a");
    expect(duplicates.add("a", 2)).toBeUndefined();
  });
});

describe("Duplicates of an interrupted session", () => {
  const begun = (captured: number): Duplicates => {
    const duplicates = new Duplicates();
    duplicates.assigned("a");
    duplicates.add("a", 50, captured);
    duplicates.renewed();
    duplicates.assigned("a");
    return duplicates;
  };

  it("passes no frame again with which a slot begins", () => {
    const duplicates = begun(1000);
    expect([[50, 1000], [49, 967], [51, 1033], [50, 1000]].map(([number, captured]) => duplicates.add("a", number!, captured))).toEqual([undefined, undefined, [49], undefined]);
  });

  it("passes no frame again whose other quality was captured a little later", () => {
    expect(begun(1000).add("a", 50, 1001)).toBeUndefined();
  });

  it("passes the frames of another publication of the same name, which are captured later", () => {
    const duplicates = begun(1000);
    expect([[1, 9000], [2, 9033], [2, 9033], [1, 9000]].map(([number, captured]) => duplicates.add("a", number!, captured))).toEqual([[], [], undefined, undefined]);
  });

  it("passes frames without capture times as those of another publication", () => {
    const duplicates = begun(NaN);
    expect([duplicates.add("a", 1), duplicates.add("a", 1)]).toEqual([[], undefined]);
  });
});

class Peer {
  static all: Peer[] = [];
  connectionState: RTCPeerConnectionState = "new";
  onconnectionstatechange: (() => void) | undefined;
  onicecandidate: ((event: { candidate: { candidate: string } | null }) => void) | undefined;
  constructor() {
    Peer.all.push(this);
  }
  be(state: RTCPeerConnectionState): void {
    this.connectionState = state;
    this.onconnectionstatechange?.();
  }
  close(): void {
    this.connectionState = "closed";
  }
}

const of = (kind: "video" | "audio", name: string, mime_type: string): Participant["publications"][number] => ({ name, kind, mode: "alternatives", codec: { mime_type, clock_rate: 90_000 }, tiles: [], qualities: [] });
const ada: Participant = { identity: "ada", publications: [of("video", "body", "video/volumetric"), of("video", "webcam", "video/VP8"), of("audio", "voice", "audio/opus")] };
const ref = (publication: string, tile = 0): TileRef => ({ participant: "ada", publication, tile });
const assignment = (mid: string, publication: string): Assignment => ({ mid, generation: 1, track: ref(publication) });

describe("A conference that moves to another server", () => {
  let conference: Conference;
  let shown: number[];
  let told: string[];
  let first: FakeSocket;
  const last = (): FakeSocket => FakeSocket.all.at(-1)!;
  const frame = (mid: string, number: number): DecodedFrame => ({
    type: "frame", mid, quality: 0, number, bytes: 1, captured: NaN, received: performance.timeOrigin + performance.now(), decodeBegan: 0, decoded: 0, skipped: 0, late: [],
    points: { count: 0, positions: new Float32Array(0), colors: new Uint8Array(0) },
  });
  const move = (more: object = {}): void => {
    first.say({ type: "moved", url: "ws://next", ticket: "t1cket", deadline_ms: 5000, make_before_break: true });
    last().open();
    last().say({ ...joined, participants: [ada], resumed: true, ...more });
  };

  beforeEach(() => {
    vi.useFakeTimers();
    FakeSocket.all = [];
    Peer.all = [];
    vi.stubGlobal("WebSocket", FakeSocket);
    vi.stubGlobal("RTCPeerConnection", Peer);
    shown = [];
    told = [];
    conference = new Conference({ url: "ws://host/v1/signal", room: "lab" }, {} as Workers, {
      frame: (_, { number }) => shown.push(number), cleared: ({ publication }) => told.push(`cleared ${publication}`), published: () => {}, unpublished: (_, name) => told.push(`unpublished ${name}`),
      posed: () => {}, picture: () => {}, audio: () => {}, silenced: (lines) => told.push(`silenced ${lines}`), people: () => {}, state: (state) => told.push(state), trouble: (message) => told.push(message),
      data: () => {}, moved: () => told.push("moved"),
    });
    conference.start();
    first = last();
    first.open();
    first.say({ ...joined, participants: [ada] });
    Peer.all[0]!.be("connected");
    first.say({ type: "assignments", assignments: [assignment("1", "body"), assignment("2", "voice")] });
    told = [];
  });
  afterEach(() => {
    conference.leave();
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  it("receives from both servers, shows each frame once, and leaves the first without a message", () => {
    conference.report(frame("1", 1));
    move();
    const second = last();
    expect(second.sent[0]).toMatchObject({ resume: { session: "s1", secret: "t1cket", new_connection: true } });
    second.say({ type: "assignments", assignments: [assignment("1", "body"), assignment("3", "voice")] });
    expect(second.sent.filter((m) => m.type === "acknowledge")).toEqual([{ type: "acknowledge", slots: [{ mid: "1", generation: 1 }, { mid: "3", generation: 1 }] }]);
    conference.report(frame("1", 2));
    Peer.all[1]!.be("connected");
    for (const [mid, number] of [["1*", 2], ["1", 3], ["1*", 3], ["1*", 4], ["1", 4]] as const) {
      conference.report(frame(mid, number));
    }
    expect(shown).toEqual([1, 2, 3, 4]);
    // Sound comes from the first connection until the end.
    expect([...conference.lines()].map(({ mid }) => mid)).toEqual(["1", "2"]);
    expect(first.readyState).toBe(1);
    vi.advanceTimersByTime(500);
    expect([first.readyState, Peer.all.map((p) => p.connectionState)]).toEqual([3, ["closed", "connected"]]);
    expect(first.sent.some((m) => m.type === "leave")).toBe(false);
    expect([...conference.lines()].map(({ mid }) => mid)).toEqual(["1*", "3*"]);
    // A frame of the first connection that was decoded late, and one of the second that was behind.
    conference.report(frame("1", 5));
    conference.report(frame("1*", 4));
    conference.report(frame("1*", 5));
    expect(shown).toEqual([1, 2, 3, 4, 5]);
    expect(conference.meters.total.missing).toBe(0);
    expect(told).toEqual(["moved"]);
  });

  it("shows no frame again that was shown before the move, also in the next move", () => {
    conference.report(frame("1", 1));
    conference.report(frame("1", 2));
    move();
    const second = last();
    Peer.all[1]!.be("connected");
    second.say({ type: "assignments", assignments: [assignment("1", "body")] });
    // The second server begins with the newest frame, before the first one sends another.
    conference.report(frame("1*", 2));
    conference.report(frame("1", 3));
    conference.report(frame("1*", 3));
    vi.advanceTimersByTime(500);
    expect(told).toContain("moved");
    conference.report(frame("1*", 4));
    second.say({ type: "moved", url: "ws://third", ticket: "another", make_before_break: true });
    last().open();
    last().say({ ...joined, participants: [ada], resumed: true });
    Peer.all[2]!.be("connected");
    last().say({ type: "assignments", assignments: [assignment("1", "body")] });
    conference.report(frame("1", 4));
    conference.report(frame("1", 5));
    expect(shown).toEqual([1, 2, 3, 4, 5]);
  });

  it("shows no frame again of a tile that the second server sends only after the move", () => {
    conference.report(frame("1", 1));
    move();
    Peer.all[1]!.be("connected");
    vi.advanceTimersByTime(1000);
    conference.report(frame("1", 2));
    vi.advanceTimersByTime(1500);
    expect(told).toContain("moved");
    last().say({ type: "assignments", assignments: [assignment("1", "body")] });
    conference.report(frame("1*", 2));
    conference.report(frame("1*", 3));
    expect(shown).toEqual([1, 2, 3]);
  });

  it("shows no frame again of a tile that changes its slot", () => {
    conference.report(frame("1", 1));
    first.say({ type: "assignments", assignments: [{ mid: "1", generation: 2 }, assignment("5", "body")] });
    conference.report(frame("5", 1));
    conference.report(frame("5", 2));
    expect(shown).toEqual([1, 2]);
  });

  it("shows no frame of the former assignment of a slot, and counts none for the next", () => {
    first.say({ type: "time_reply", id: "time", t0_us: nowMicroseconds() - 100_000, t1_us: 0, t2_us: 0 });
    conference.report(frame("1", 500));
    const next: Assignment = { mid: "1", generation: 2, track: ref("body", 1) };
    first.say({ type: "assignments", assignments: [next] });
    conference.report(frame("1", 501));
    vi.advanceTimersByTime(49);
    conference.report(frame("1", 502));
    // The first frame can follow the acknowledgement by a round trip, or by less if the path is shorter now.
    vi.advanceTimersByTime(2);
    conference.report(frame("1", 3));
    // The server repeats its assignments to a page that returns.
    first.say({ type: "assignments", assignments: [next] });
    conference.report(frame("1", 5));
    expect(shown).toEqual([500, 3, 5]);
    expect(conference.meters.total).toMatchObject({ decoded: 3, missing: 1 });
  });

  it("shows no frame again after a resume with a new connection", () => {
    const at = (number: number): DecodedFrame => ({ ...frame("1", number), captured: 1000 + 33 * number });
    conference.report(at(1));
    conference.report(at(2));
    Peer.all[0]!.be("failed");
    vi.advanceTimersByTime(5000);
    last().open();
    expect(last().sent[0]).toMatchObject({ resume: { new_connection: true } });
    last().say({ ...joined, participants: [ada], resumed: true });
    Peer.all[1]!.be("connected");
    last().say({ type: "assignments", assignments: [assignment("1", "body")] });
    conference.report(at(2));
    conference.report(at(3));
    expect(shown).toEqual([1, 2, 3]);
  });

  it("shows a publication that replaced another one of the same name while the websocket was broken", () => {
    conference.report({ ...frame("1", 50), captured: 1000 });
    first.close();
    vi.advanceTimersByTime(300);
    last().open();
    expect(last().sent[0]).toMatchObject({ resume: { new_connection: false } });
    last().say({ ...joined, participants: [ada], resumed: true });
    last().say({ type: "assignments", assignments: [{ ...assignment("1", "body"), generation: 2 }] });
    conference.report({ ...frame("1", 1), captured: 2000 });
    conference.report({ ...frame("1", 2), captured: 2033 });
    expect(shown).toEqual([50, 1, 2]);
  });

  it("shows all descriptions of a frame, each once", () => {
    const described = (mid: string, quality: number, generation = 2): Assignment => ({ ...assignment(mid, "body"), quality, generation });
    first.say({ type: "assignments", assignments: [described("1", 0), described("5", 1)] });
    conference.report(frame("1", 1));
    conference.report(frame("5", 1));
    move();
    Peer.all[1]!.be("connected");
    last().say({ type: "assignments", assignments: [described("1", 0), described("2", 1)] });
    for (const [mid, number] of [["1*", 1], ["2*", 1], ["2*", 2], ["1*", 2], ["1", 2], ["5", 2]] as const) {
      conference.report(frame(mid, number));
    }
    expect(shown).toEqual([1, 1, 2, 2]);
  });

  it("shows a publication that replaces another one of the same name", () => {
    const next = { type: "published", participant: "ada", publication: ada.publications[0]! } as const;
    conference.report(frame("1", 50));
    first.say({ type: "unpublished", participant: "ada", publication: "body" });
    conference.report(frame("1", 51));
    first.say(next);
    conference.report(frame("1", 52));
    first.say({ type: "assignments", assignments: [{ ...assignment("1", "body"), generation: 2 }] });
    conference.report(frame("1", 1));
    move();
    Peer.all[1]!.be("connected");
    last().say({ type: "assignments", assignments: [assignment("1", "body")] });
    conference.report(frame("1*", 2));
    last().say({ type: "unpublished", participant: "ada", publication: "body" });
    last().say(next);
    conference.report(frame("1*", 1));
    expect(shown).toEqual([50, 51, 52, 1, 2, 1]);
  });

  it("reads the media of the first server, and nothing else of it", () => {
    move();
    first.say({ type: "participant_left", identity: "ada", reason: "moved" });
    first.say({ type: "unpublished", participant: "ada", publication: "body" });
    first.say({ type: "closing", code: "replaced", message: "the session continues elsewhere" });
    expect(conference.participants.has("ada")).toBe(true);
    first.say({ type: "assignments", assignments: [{ mid: "4", generation: 1, track: ref("body", 1) }] });
    expect(first.sent.at(-1)).toEqual({ type: "acknowledge", slots: [{ mid: "4", generation: 1 }] });
    conference.report(frame("4", 7));
    expect(shown).toEqual([7]);
    expect(told).toEqual([]);
  });

  it("clears a tile only if no server sends the tile", () => {
    move();
    last().say({ type: "assignments", assignments: [assignment("1", "body")] });
    last().say({ type: "sending", slots: [{ mid: "1", generation: 1, quality: -1, reason: "budget" }] });
    expect(told).toEqual([]);
    first.say({ type: "sending", slots: [{ mid: "1", generation: 1, quality: -1, reason: "budget" }] });
    expect(told).toEqual(["cleared body"]);
  });

  it("sends its candidates to the server of the connection, and skips those for a server that is gone", () => {
    move();
    const offer = (peer: number, candidate: string): void => Peer.all[peer]!.onicecandidate?.({ candidate: { candidate } });
    const candidates = (socket: FakeSocket): string[] => socket.sent.flatMap((m) => (m.type === "candidate" ? [m.candidate] : []));
    offer(0, "relay 1");
    offer(1, "host 2");
    first.close();
    offer(0, "late");
    expect([candidates(first), candidates(last())]).toEqual([["relay 1"], ["host 2"]]);
    expect(told).toEqual([]);
  });

  it("loses no request: what the first server has not answered is sent to the second", async () => {
    const replies: (string | undefined)[] = [];
    for (const text of ["one", "two", "three"]) {
      void conference.data.say("chat", text).then((refused) => replies.push(refused));
    }
    conference.retract("desk");
    conference.mute("voice", true);
    conference.mute("voice", false);
    move({ data_received: 2 });
    expect(last().sent.filter((m) => m.type === "data")).toMatchObject([{ seq: 3, text: "three" }]);
    expect(last().sent).toContainEqual({ type: "unpublish", id: "retract/1", publication: "desk" });
    expect(last().sent).toContainEqual({ type: "mute", publication: "voice", muted: false });
    // The reply of the first server is on the way, and counts.
    first.say({ type: "ok", id: "data/3" });
    await vi.advanceTimersByTimeAsync(0);
    expect(replies).toEqual([undefined, undefined, undefined]);
    void conference.data.say("chat", "four");
    expect(last().sent.at(-1)).toMatchObject({ type: "data", text: "four" });
    expect(first.sent.some((m) => m.type === "data" && m.text === "four")).toBe(false);
  });

  it("resumes if the second connection is not established in time", () => {
    move();
    const second = last();
    vi.advanceTimersByTime(5200);
    expect(told).toContain("resuming");
    expect(second.readyState).toBe(3);
    vi.advanceTimersByTime(300);
    last().open();
    expect(last().sent[0]).toMatchObject({ resume: { secret: "secret", new_connection: true } });
    last().say({ ...joined, participants: [ada], resumed: true });
    expect(Peer.all.map((p) => p.connectionState)).toEqual(["closed", "closed", "new"]);
    expect(first.readyState).toBe(3);
  });

  it("moves again, also before the end of the move before", () => {
    move();
    const second = last();
    Peer.all[1]!.be("connected");
    second.say({ type: "assignments", assignments: [assignment("1", "body")] });
    second.say({ type: "moved", url: "ws://third", ticket: "another", make_before_break: true });
    last().open();
    last().say({ ...joined, participants: [ada], resumed: true });
    expect(FakeSocket.all.map((s) => s.readyState)).toEqual([3, 1, 1]);
    expect(Peer.all.map((p) => p.connectionState)).toEqual(["closed", "connected", "new"]);
    last().say({ type: "assignments", assignments: [assignment("1", "body")] });
    conference.report(frame("1*", 1));
    conference.report(frame("1", 1));
    conference.report(frame("1", 2));
    expect(shown).toEqual([1, 2]);
  });

  it("ends both connections when the page leaves", () => {
    move();
    conference.leave();
    expect(last().sent.at(-1)).toEqual({ type: "leave" });
    expect(first.sent.some((m) => m.type === "leave")).toBe(false);
    expect(FakeSocket.all.map((s) => s.readyState)).toEqual([3, 3]);
    expect(Peer.all.map((p) => p.connectionState)).toEqual(["closed", "closed"]);
  });
});
