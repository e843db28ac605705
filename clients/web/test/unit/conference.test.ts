import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Workers } from "../../src/media/connection";
import type { Participant } from "../../src/signal/messages";
import { Conference, type ConferenceEvents } from "../../src/viewer/conference";
import { Roster } from "../../src/viewer/roster";
import { FakeSocket, joined } from "./socket";

const body = (name: string): Participant["publications"][number] => ({
  name, kind: "video", mode: "alternatives", codec: { mime_type: "video/volumetric", clock_rate: 90_000 }, tiles: [], qualities: [],
});

describe("Conference", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    FakeSocket.all = [];
    vi.stubGlobal("WebSocket", FakeSocket);
    vi.stubGlobal("RTCPeerConnection", class {
      connectionState = "connected";
      close(): void {}
    });
  });
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  const last = (): FakeSocket => FakeSocket.all.at(-1)!;
  const events: ConferenceEvents = {
    frame: () => {}, cleared: () => {}, published: () => {}, unpublished: () => {}, posed: () => {}, picture: () => {}, audio: () => {}, silenced: () => {}, moved: () => {}, people: () => {}, state: () => {}, trouble: () => {}, data: () => {},
  };

  it.each([true, false])("says again what was chosen and asked for while the websocket was broken (resumed: %s)", (resumed) => {
    const conference = new Conference({ url: "ws://host/v1/signal", room: "lab" }, {} as Workers, events);
    conference.start();
    last().open();
    last().say(joined);
    conference.choose({ participant: "ada", publication: "body", tile: 1, quality: 0 });
    expect(last().sent.at(-1)).toMatchObject({ type: "set_quality" });
    last().close();
    conference.choose({ participant: "ada", publication: "body", tile: 2, quality: 1 });
    conference.choose({ participant: "grace", publication: "body", quality: -1 });
    conference.follow(true);
    vi.advanceTimersByTime(300);
    last().open();
    last().say({ ...joined, resumed });
    const said = last().sent.filter((m) => m.type === "set_quality" || m.type === "trace");
    expect(said).toEqual([
      { type: "set_quality", choices: [{ participant: "ada", publication: "body", tile: 1, quality: 0 }, { participant: "ada", publication: "body", tile: 2, quality: 1 }] },
      { type: "set_quality", choices: [{ participant: "grace", publication: "body", quality: -1 }] },
      { type: "trace", frame_times: true },
    ]);
    conference.leave();
  });

  it.each([true, undefined, false])("mutes its publications again if the server has lost the session's state (restored: %s)", (restored) => {
    const conference = new Conference({ url: "ws://host/v1/signal", room: "lab" }, {} as Workers, events);
    conference.start();
    last().open();
    last().say(joined);
    conference.look({ position: [1, 2, 3], orientation: [0, 0, 0, 1], fov: 60, aspect: 1 });
    conference.mute("voice", true);
    conference.mute("screen", true);
    conference.mute("screen", false);
    last().close();
    vi.advanceTimersByTime(300);
    last().open();
    last().say({ ...joined, resumed: true, ...(restored === undefined ? {} : { restored }) });
    expect(last().sent.filter((m) => m.type === "mute")).toEqual(restored === false ? [{ type: "mute", publication: "voice", muted: true }] : []);
    expect(last().sent.find((m) => m.type === "viewpoint")).toMatchObject({ position: [1, 2, 3] });
    conference.leave();
  });

  it("delivers the lossy messages of a participant who has left and returned during an outage", () => {
    const got: (string | undefined)[] = [];
    const conference = new Conference({ url: "ws://host/v1/signal", room: "lab" }, {} as Workers, { ...events, data: ({ text }) => got.push(text) });
    const say = (seq: number, text: string): void => last().say({ type: "data", seq, participant: "grace", topic: "hand", lossy: true, text });
    conference.start();
    last().open();
    last().say(joined);
    say(5, "before");
    last().close();
    vi.advanceTimersByTime(300);
    last().open();
    last().say({ ...joined, resumed: true });
    say(1, "after");
    expect(got).toEqual(["before", "after"]);
    conference.leave();
  });

  it("settles messages without a reply when the room is left", async () => {
    const conference = new Conference({ url: "ws://host/v1/signal", room: "lab" }, {} as Workers, events);
    conference.start();
    last().open();
    last().say(joined);
    const before = conference.data.say("chat", "a");
    conference.leave();
    expect([await before, await conference.data.say("chat", "b")]).toEqual(["the room was left before the server's reply", "the room was left"]);
    expect(last().sent.filter((m) => m.type === "data")).toHaveLength(1);
  });

  it("ends the lines with sound of a connection that is replaced, be it those in use or not", async () => {
    const peers: { connectionState: RTCPeerConnectionState; onconnectionstatechange?: () => void }[] = [];
    vi.stubGlobal("RTCPeerConnection", class {
      connectionState: RTCPeerConnectionState = "connected";
      localDescription = { sdp: "answer" };
      constructor() {
        peers.push(this);
      }
      setRemoteDescription = async (): Promise<void> => {};
      setLocalDescription = async (): Promise<void> => {};
      createAnswer = async (): Promise<object> => ({});
      createDataChannel = (): object => ({});
      getTransceivers = (): object[] => ["1", "2"].map((mid) => ({ mid, receiver: { track: {} } }));
      close = (): void => void (this.connectionState = "closed");
    });
    const told: string[] = [];
    const conference = new Conference({ url: "ws://host/v1/signal", room: "lab" }, {} as Workers, {
      ...events, audio: (line) => told.push(`+${line}`), silenced: (lines) => told.push(...lines.map((line) => `-${line}`)),
    });
    const voice: Participant = { identity: "grace", publications: [{ ...body("voice"), kind: "audio" }] };
    const enter = async (resumed: boolean): Promise<void> => {
      last().open();
      last().say({ ...joined, resumed, participants: [voice] });
      last().say({ type: "offer", offer: 1, sdp: "", media: [{ mid: "1", role: "audio" }, { mid: "2", role: "audio" }] });
      await vi.advanceTimersByTimeAsync(0);
      last().say({ type: "assignments", assignments: [{ mid: "1", generation: 1, track: { participant: "grace", publication: "voice", tile: 0 } }] });
    };
    conference.start();
    await enter(false);
    expect(told.splice(0)).toEqual(["+1", "+2"]);
    Object.assign(peers[0]!, { connectionState: "failed" }).onconnectionstatechange!();
    await vi.advanceTimersByTimeAsync(4300);
    await enter(true);
    expect(told.splice(0)).toEqual(["-1", "-2", "+1", "+2"]);
    last().say({ type: "moved", url: "ws://next", ticket: "t1cket", deadline_ms: 5000, make_before_break: true });
    await enter(true);
    await vi.advanceTimersByTimeAsync(2500);
    expect(told).toEqual(["+1*", "+2*", "-1", "-2"]);
    expect([...conference.lines()].map(({ mid }) => mid)).toEqual(["1*"]);
    conference.leave();
  });

  it("counts the audience", () => {
    let shown = 0;
    const conference = new Conference({ url: "ws://host/v1/signal", room: "lab" }, {} as Workers, { ...events, people: () => shown++ });
    conference.start();
    last().open();
    last().say(joined);
    last().say({ type: "audience", count: 400 });
    expect([conference.audience, shown]).toEqual([400, 1]);
    conference.leave();
  });

  it.each([true, false])("ends what it publishes, be it that the websocket breaks before the server knows (resumed: %s)", (resumed) => {
    const troubles: string[] = [];
    const conference = new Conference({ url: "ws://host/v1/signal", room: "lab" }, {} as Workers, { ...events, trouble: (m) => troubles.push(m) });
    const ended = (): object[] => last().sent.filter((m) => m.type === "unpublish");
    conference.start();
    last().open();
    last().say(joined);
    conference.retract("desk");
    last().say({ type: "ok", id: "retract/1" });
    conference.retract("body");
    last().close();
    conference.retract("voice");
    vi.advanceTimersByTime(300);
    last().open();
    last().say({ ...joined, resumed });
    expect(ended()).toEqual(resumed ? [{ type: "unpublish", id: "retract/2", publication: "body" }, { type: "unpublish", id: "retract/3", publication: "voice" }] : []);
    if (resumed) {
      // The server had received the first request.
      last().say({ type: "error", id: "retract/2", code: "not_found", message: "no publication" });
      last().say({ type: "ok", id: "retract/3" });
    }
    expect(troubles).toEqual([]);
    last().close();
    vi.advanceTimersByTime(300);
    last().open();
    last().say({ ...joined, resumed: true });
    expect(ended()).toEqual([]);
    conference.leave();
  });
});

describe("Roster", () => {
  it("tells who and what has come and gone, where everybody is told anew", () => {
    const told: string[] = [];
    const roster = new Roster({ published: (who, p) => told.push(`+${who}/${p.name}`), unpublished: (who, name) => told.push(`-${who}/${name}`), people: () => {} });
    roster.present([{ identity: "ada", publications: [body("a"), body("b")] }, { identity: "grace", publications: [body("c")] }]);
    told.length = 0;
    roster.present([{ identity: "ada", publications: [body("b")] }, { identity: "linus", publications: [] }]);
    expect(told).toEqual(["-grace/c", "-ada/a", "+ada/b"]);
    expect([...roster.participants.keys()]).toEqual(["ada", "linus"]);
    roster.unpublishes("ada", "b");
    expect(roster.publication({ participant: "ada", publication: "b" })).toBeUndefined();
    roster.publishes("nobody", body("d"));
    expect(told.at(-1)).toBe("-ada/b");
  });
});
