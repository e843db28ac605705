import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Emitter } from "../../src/client/events";
import { JoinError, pagesURL, signallingURL } from "../../src/client/options";
import { Publishing } from "../../src/client/publishing";
import { join, type Room, type RoomEvents } from "../../src/client/room";
import type { Box, Participant } from "../../src/signal/messages";
import { type EmbeddedMessage, Embedding, originsOf } from "../../src/viewer/embed";
import type { Conference } from "../../src/viewer/conference";
import { FakeSocket, joined } from "./socket";

describe("signallingURL", () => {
  it("accepts addresses of servers and of signalling", () => {
    expect(signallingURL("https://volsfu.example")).toBe("wss://volsfu.example/v1/signal");
    expect(signallingURL("http://127.0.0.1:8080/")).toBe("ws://127.0.0.1:8080/v1/signal");
    expect(signallingURL("https://example.org/rooms/")).toBe("wss://example.org/rooms/v1/signal");
    expect(signallingURL(new URL("wss://volsfu.example/v1/signal"))).toBe("wss://volsfu.example/v1/signal");
    expect(pagesURL("wss://example.org/rooms/v1/signal")).toBe("https://example.org/rooms/");
  });

  it("names the expected form", () => {
    expect(() => signallingURL("volsfu")).toThrow(/"volsfu"\. Expected an address such as/);
    expect(() => signallingURL("ftp://volsfu.example")).toThrow(/begins with ftp:/);
  });
});

describe("Emitter", () => {
  it("calls the listeners until they are removed", () => {
    const received: string[] = [];
    const emitter = new Emitter<{ said(text: string): void }>({ said: (text) => received.push(`first ${text}`) });
    const remove = emitter.on("said", (text) => received.push(`second ${text}`));
    emitter.emit("said", "a");
    remove();
    emitter.emit("said", "b");
    expect(received).toEqual(["first a", "second a", "first b"]);
    expect(emitter.count("said")).toBe(1);
  });
});

class Idle {
  static running = 0;
  onmessage: unknown;
  onerror: unknown;
  constructor() {
    Idle.running++;
  }
  postMessage(): void {}
  terminate(): void {
    Idle.running--;
  }
}

class Peer {
  connectionState = "new";
  close(): void {}
}

const alice: Participant = { identity: "alice", publications: [{ name: "body", kind: "video", mode: "alternatives", codec: { mime_type: "video/volumetric", clock_rate: 90_000 }, tiles: [], qualities: [] }] };
const entered = { ...joined, participants: [alice] };

describe("join", () => {
  beforeEach(() => {
    FakeSocket.all = [];
    Idle.running = 0;
    vi.stubGlobal("WebSocket", FakeSocket);
    vi.stubGlobal("Worker", Idle);
    vi.stubGlobal("RTCPeerConnection", Peer);
    vi.stubGlobal("navigator", { hardwareConcurrency: 2 });
    vi.stubGlobal("fetch", () => Promise.resolve({ ok: true, status: 200, json: () => Promise.resolve({ rooms: [] }) }));
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  async function open(more: object = {}): Promise<{ room: Promise<Room>; socket: FakeSocket; received: string[] }> {
    const received: string[] = [];
    const on: Partial<RoomEvents> = {
      published: (participant, { name }) => received.push(`published ${participant}/${name}`), participant: ({ identity }) => received.push(`participant ${identity}`),
      left: (identity) => received.push(`left ${identity}`), state: (state, why) => received.push(`state ${state} ${why}`.trim()), data: ({ participant, text }) => received.push(`${participant}: ${text}`),
    };
    const room = join({ url: "https://volsfu.example", room: "lab", token: "t", on, ...more });
    room.catch(() => {});
    await vi.waitFor(() => expect(FakeSocket.all).toHaveLength(1), { timeout: 60_000 });
    const [socket] = FakeSocket.all as [FakeSocket];
    socket.open();
    return { room, socket, received };
  }

  it("reports the room's first state and later changes", async () => {
    const { room, socket, received } = await open();
    expect(socket.url.href).toBe("wss://volsfu.example/v1/signal?access_token=t");
    socket.say(entered);
    const inside = await room;
    expect([inside.name, inside.identity, inside.state]).toEqual(["lab", "ada", "joined"]);
    socket.say({ type: "data", seq: 1, participant: "alice", topic: "chat", text: "hello" });
    socket.say({ type: "participant_left", identity: "alice", reason: "left" });
    expect(received).toEqual(["published alice/body", "participant alice", "state joined", "alice: hello", "left alice"]);
    inside.leave();
    expect(inside.state).toBe("closed");
    await expect(inside.publishFigure()).rejects.toThrow("The room was left.");
  });

  it("receives nothing before subscribe if asked", async () => {
    const { room, socket } = await open({ subscribe: false });
    socket.say(entered);
    (await room).subscribe("alice", "body");
    const choices = socket.sent.flatMap((m) => (m.type === "set_quality" ? m.choices.map((c) => c.quality) : []));
    expect([choices[0], choices.at(-1)]).toEqual([-1, "auto"]);
    (await room).leave();
  });

  it("rejects with the browser's reason, and leaves no worker behind", async () => {
    vi.stubGlobal("WebSocket", class {
      static readonly OPEN = 1;
      constructor() {
        throw new Error("An insecure WebSocket connection may not be initiated from a page loaded over HTTPS.");
      }
    });
    await expect(join({ url: "http://volsfu.example", room: "lab" })).rejects.toThrow(
      new JoinError("The browser refuses the connection to ws://volsfu.example/v1/signal: An insecure WebSocket connection may not be initiated from a page loaded over HTTPS."),
    );
    vi.stubGlobal("RTCPeerConnection", class {
      constructor({ iceServers }: RTCConfiguration) {
        if (iceServers!.length > 0) {
          throw new Error("Both username and credential are required.");
        }
      }
    });
    await expect(join({ url: "https://volsfu.example", room: "lab", iceServers: [{ urls: "turn:volsfu.example" }] })).rejects.toThrow(
      new JoinError("The browser refuses the option iceServers: Both username and credential are required."),
    );
    expect([FakeSocket.all.length, Idle.running]).toEqual([0, 0]);
  });

  it("rejects with the server's reason", async () => {
    const { room, socket } = await open();
    socket.say({ type: "error", id: "join", code: "forbidden", message: "the token is for another room" });
    await expect(room).rejects.toThrow(new JoinError("the token is for another room"));
  });

  it("ends the publications and the workers when the room is left", async () => {
    const { room, socket } = await open();
    socket.say(entered);
    const inside = await room;
    const track = { kind: "audio", enabled: true, stopped: false, onended: null, stop: () => void (track.stopped = true) };
    const sound = await inside.publishSound(track as unknown as MediaStreamTrack);
    const figure = await inside.publishFigure();
    expect(Idle.running).toBeGreaterThan(2);
    inside.leave();
    expect(await Promise.all([sound.ended, figure.ended])).toEqual(["", ""]);
    expect([track.stopped, Idle.running]).toEqual([true, 0]);
  });

  it("refuses points that their arrays do not have", async () => {
    const { room, socket } = await open();
    socket.say(entered);
    const inside = await room;
    const points = await inside.publishPoints({ box: { min: [0, 0, 0], max: [1, 1, 1] } });
    expect(() => points.write({ count: 3, positions: new Float32Array(9), colors: new Uint8Array(6) })).toThrow(new RangeError("3 points in arrays for 2, expected arrays with three values for each point"));
    inside.leave();
  });

  it("publishes nothing that cannot be encrypted in a session with a key", () => {
    const publishing = new Publishing({ encryption: {} } as unknown as Conference, undefined, () => {});
    expect(() => publishing.sound({ kind: "audio" } as MediaStreamTrack, {})).toThrow("This browser cannot encrypt sound.");
    expect(() => publishing.picture({ kind: "video" } as MediaStreamTrack, {})).toThrow("webcams and screens cannot be encrypted");
  });

  it("refuses what the connection cannot send", async () => {
    const { room, socket } = await open();
    socket.say(entered);
    const inside = await room;
    const sound = { kind: "audio", enabled: true, onended: null, stop: () => {} } as unknown as MediaStreamTrack;
    const first = await inside.publishSound(sound);
    await expect(inside.publishSound({ ...sound })).rejects.toThrow('This participant publishes "voice" already. End that publication before, or choose another name.');
    first.end();
    await first.ended;
    await inside.publishSound(sound);
    await expect(inside.publishSound({ kind: "video" } as MediaStreamTrack, { name: "film" })).rejects.toThrow("a track of video, expected a track of audio: of a MediaStream, pass getAudioTracks()[0]");
    await expect(inside.publishPicture({} as MediaStreamTrack)).rejects.toThrow("[object Object], expected a track of video: of a MediaStream, pass getVideoTracks()[0]");
    await expect(inside.publishPicture({ kind: "video", readyState: "ended" } as MediaStreamTrack)).rejects.toThrow("The track of video has ended. Open the device again.");
    const box: Box = { min: [0, 0, 0], max: [1, 2, 1] };
    const points = (more: object): Promise<unknown> => inside.publishPoints({ box, ...more });
    await expect(points({ box: undefined })).rejects.toThrow("the box undefined, expected three numbers in metres for min, and three for max that are greater");
    await expect(points({ box: { min: [0, 0, 0], max: [1, -1, 1] } })).rejects.toThrow(RangeError);
    await expect(points({ qualities: [{ name: "all", share: 1, bits: 10 }, { name: "low", share: 0.5, bits: 10 }] })).rejects.toThrow('the quality "low" has the share 0.5, expected more than 0, at most 1, and at least the 1 of the quality before');
    await expect(points({ qualities: [{ name: "all", share: 1, bits: 31 }] })).rejects.toThrow('the quality "all" has 31 bits, expected 1 to 30');
    inside.leave();
  });

  it("ends with the first loss without reconnect", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
    const { room, socket, received } = await open({ reconnect: false });
    socket.say(entered);
    await room;
    socket.close();
    expect(received.at(-1)).toBe("state closed the connection to the server broke");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(FakeSocket.all).toHaveLength(1);
  });

  it("can be aborted", async () => {
    const abort = new AbortController();
    const { room } = await open({ signal: abort.signal });
    abort.abort(new Error("changed my mind"));
    await expect(room).rejects.toThrow("changed my mind");
  });
});

describe("Embedding", () => {
  it("takes origins alone from the address", () => {
    expect(originsOf(new URLSearchParams("embed=https://a.example,http://b.example:81,https://c.example/path,*,null"))).toEqual(["https://a.example", "http://b.example:81"]);
    expect(originsOf(new URLSearchParams(""))).toEqual([]);
  });

  it("sends events to the allowed origins", () => {
    vi.useFakeTimers();
    const sent: string[] = [];
    const recipient = { postMessage: (message: EmbeddedMessage, origin: string) => sent.push(`${origin} ${message.event}${"present" in message ? ` ${message.name} ${message.present}` : ""}`) };
    const participants = new Map([["alice", alice]]);
    const conference = { room: "demo", identity: "ada", participants, name: (who: string) => who.toUpperCase() } as unknown as Conference;
    const embedding = new Embedding(recipient as never, ["https://a.example"]);
    embedding.present(conference);
    embedding.joined(conference);
    embedding.joined(conference);
    participants.clear();
    embedding.present(conference);
    embedding.left("");
    new Embedding(recipient as never, []).joined(conference);
    vi.useRealTimers();
    expect(sent).toEqual(["joined", "participant ALICE true", "participant ALICE false", "left"].map((event) => `https://a.example ${event}`));
  });
});
