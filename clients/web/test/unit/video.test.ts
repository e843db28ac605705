import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { UplinkStatistics } from "../../src/media/connection";
import { SenderBudget } from "../../src/publish/video/budget";
import { explainScreen, openVideo } from "../../src/publish/video/capture";
import { describeVideo, encodingsOf } from "../../src/publish/video/plan";
import { hasCodec, VideoPublication } from "../../src/publish/video/publication";
import { EncodingSender } from "../../src/publish/video/sender";
import { videoWishesOf } from "../../src/publish/video/wishes";
import type { ClientMessage } from "../../src/signal/messages";
import type { Conference } from "../../src/viewer/conference";
import { type GivenUp, OwnPublications } from "../../src/viewer/own";

const hd = { width: 1280, height: 720, fps: 30 };

afterEach(() => vi.unstubAllGlobals());

describe("encodingsOf", () => {
  it("halves a webcam's picture twice", () => {
    expect(encodingsOf("webcam", hd)).toEqual([
      { name: "low", width: 320, height: 180, fps: 15, bps: 133_000, scale: 4 },
      { name: "mid", width: 640, height: 360, fps: 30, bps: 530_000, scale: 2 },
      { name: "high", width: 1280, height: 720, fps: 30, bps: 1_500_000, scale: 1 },
    ]);
  });

  it("has no qualities too small to be seen, and ascending rates", () => {
    expect(encodingsOf("webcam", { width: 320, height: 240, fps: 10 }).map((e) => [e.name, e.width, e.fps])).toEqual([["mid", 160, 10], ["high", 320, 10]]);
    expect(encodingsOf("webcam", { width: 90, height: 160, fps: 0 })).toHaveLength(1);
    for (const kind of ["webcam", "screen"] as const) {
      const rates = encodingsOf(kind, { width: 1920, height: 1080, fps: 30 }).map((e) => e.bps);
      expect([...rates].sort((a, b) => a - b)).toEqual(rates);
    }
  });

  it("keeps the pixels of a screen, at fewer pictures", () => {
    expect(encodingsOf("screen", { width: 1920, height: 1080, fps: 30 }).map((e) => [e.width, e.fps])).toEqual([[960, 5], [1920, 15]]);
  });
});

describe("describeVideo", () => {
  it("has a panel of the picture's ratio, and the pixels of each quality", () => {
    const publication = describeVideo("screen", "H264", { width: 1000, height: 500, fps: 30 }, encodingsOf("screen", { width: 1000, height: 500, fps: 30 }));
    expect(publication).toMatchObject({ name: "screen", kind: "video", codec: { mime_type: "video/H264", clock_rate: 90_000 }, picture: { source: "screen" }, frame_rate: 15 });
    const { min, max } = publication.tiles[0]!.box;
    expect((max[0] - min[0]) / (max[1] - min[1])).toBeCloseTo(2, 9);
    expect(publication.qualities.at(-1)).toMatchObject({ name: "high", width: 1000, height: 500, frame_rate: 15 });
  });
});

describe("videoWishesOf", () => {
  it.each([
    ["publish=webcam&codec=h264&lines=360", { webcam: true, alone: true, codec: "H264", lines: 360 }],
    ["publish=figure,webcam&lines=5", { webcam: true, alone: false, codec: "VP8", lines: 720 }],
    ["publish=figure", { webcam: false, alone: false, codec: "VP8", lines: 720 }],
  ])("reads %s", (query, wishes) => expect(videoWishesOf(new URLSearchParams(query))).toEqual(wishes));
});

describe("SenderBudget", () => {
  const free = { available: 10e6, needed: 2e6, sent: 3, limit: "none" };
  const narrow = { available: 1e6, needed: 2e6, sent: 3, limit: "bandwidth" };
  /** Steps once a second, and returns the number of qualities after each second. */
  const run = (budget: SenderBudget, from: number, seconds: number, load: (qualities: number) => typeof free): number[] =>
    Array.from({ length: seconds }, (_, i) => {
      budget.step(from + 1000 * i, load(budget.qualities));
      return budget.qualities;
    });

  it("gives up the highest quality after some seconds of a narrow uplink", () => {
    const budget = new SenderBudget(3);
    expect(run(budget, 0, 6, (sent) => ({ ...narrow, sent }))).toEqual([3, 3, 3, 3, 2, 2]);
    expect(budget.cause).toBe("bandwidth");
  });

  it("takes a limited picture on a wide uplink for the beginning of the estimate", () => {
    expect(run(new SenderBudget(3), 0, 30, () => ({ ...narrow, available: 3e6 })).at(-1)).toBe(3);
  });

  it("never gives up the lowest", () => {
    expect(run(new SenderBudget(3), 0, 60, (sent) => ({ ...narrow, sent, limit: "cpu" }))).toContain(1);
    expect(Math.min(...run(new SenderBudget(3), 0, 600, (sent) => ({ ...narrow, sent })))).toBe(1);
  });

  it("tries again, ever more rarely where this fails, and keeps success", () => {
    const budget = new SenderBudget(2);
    // Two qualities never fit.
    const counts = run(budget, 0, 300, (sent) => (sent === 2 ? { ...narrow, sent } : { ...free, sent }));
    const attempts = counts.flatMap((n, at) => (n === 2 && counts[at - 1] === 1 ? [at] : []));
    const waits = attempts.slice(1).map((at, i) => at - attempts[i]!);
    expect(waits.length).toBeGreaterThan(2);
    expect(waits).toEqual([...waits].sort((a, b) => a - b));
    expect(waits.at(-1)!).toBeGreaterThanOrEqual(60);
    expect(run(budget, 300_000, 100, (sent) => ({ ...free, sent })).at(-1)).toBe(2);
    expect(budget.cause).toBeUndefined();
  });

  it("gives up those above the sent ones, too", () => {
    const budget = new SenderBudget(3);
    run(budget, 0, 5, () => ({ ...narrow, sent: 2 }));
    expect(budget.qualities).toBe(1);
  });
});

describe("EncodingSender", () => {
  it("changes one after the other, and leaves out what was replaced", async () => {
    const done: unknown[] = [];
    let waiting: (() => void)[] = [];
    const sender = {
      getParameters: () => ({ encodings: [{}], codecs: [{ mimeType: "video/VP8" }, { mimeType: "video/rtx" }, { mimeType: "video/H264" }] }),
      setParameters: (p: { encodings: { active: boolean; maxBitrate: number; codec: RTCRtpCodec }[] }) => new Promise<void>((resolve) => {
        expect(p.encodings[0]!.codec.mimeType).toBe("video/H264");
        done.push(p.encodings[0]!.maxBitrate);
        waiting.push(resolve);
      }),
    };
    const encoding = new EncodingSender(sender as unknown as RTCRtpSender, "3", "webcam", "H264", () => done.push("trouble"));
    for (const maxBitrate of [1, 2, 3]) {
      encoding.set({ active: true, maxBitrate });
    }
    expect(done).toEqual([1]);
    waiting.shift()!();
    await vi.waitFor(() => expect(done).toEqual([1, 3]), { timeout: 60_000 });
    waiting.shift()!();
    sender.setParameters = () => Promise.reject(new Error("no"));
    await Promise.resolve();
    await Promise.resolve();
    encoding.set({ active: true, maxBitrate: 4 });
    await vi.waitFor(() => expect(done.at(-1)).toBe("trouble"), { timeout: 60_000 });
    waiting = [];
  });
});

describe("VideoPublication", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("RTCRtpReceiver", { getCapabilities: () => ({ codecs: [{ mimeType: "video/VP8" }, { mimeType: "video/rtx" }, { mimeType: "video/H264" }] }) });
    vi.stubGlobal("RTCRtpSender", { getCapabilities: () => ({ codecs: [{ mimeType: "video/VP8" }] }) });
  });
  afterEach(() => vi.useRealTimers());

  const begin = () => {
    const said: ClientMessage[] = [];
    const lost: string[] = [];
    const track = { stopped: false, onended: null as (() => void) | null, stop: () => void (track.stopped = true) };
    const fed = new Map<string, unknown>();
    const send = (m: ClientMessage): boolean => said.push(m) > 0;
    const own = new OwnPublications(send);
    let uplink: UplinkStatistics = { available: 9e6, senders: new Map() };
    const conference = {
      session: { send }, feed: (name: string, source: unknown) => (source ? fed.set(name, source) : fed.delete(name)), publish: () => {}, unpublish: () => {},
      retract: (publication: string) => said.push({ type: "unpublish", publication }), giveUp: (name: string, givenUp: GivenUp) => own.giveUp(name, givenUp), uplink: async () => uplink,
    } as unknown as Conference;
    const video = new VideoPublication(conference, "webcam", "VP8", { track: track as unknown as MediaStreamTrack, sound: undefined, capture: hd }, (why) => lost.push(why), (m) => lost.push(m));
    const active: boolean[] = [];
    const attach = (): void => video.encodings.forEach((_, q) => video.answered(q, {
      getParameters: () => ({ encodings: [{}], codecs: [] }), setParameters: async (p: { encodings: { active: boolean }[] }) => void (active[q] = p.encodings[0]!.active),
    } as unknown as RTCRtpSender, String(q)));
    return { video, said, lost, track, fed, active, attach, load: (next: UplinkStatistics) => (uplink = next) };
  };

  it("has a line for each quality, of which those without a receiver rest", async () => {
    const { video, said, active, attach, fed, track } = begin();
    expect(fed.get("webcam")).toBe(video);
    video.entered(true, false);
    expect(said[0]).toMatchObject({ type: "publish", id: "webcam/1", publication: { name: "webcam", qualities: [{ name: "low" }, { name: "mid" }, { name: "high" }] } });
    expect(video.handle({ type: "ok", id: "webcam/1" })).toBe(true);
    expect(video.live).toBe(false);
    attach();
    expect(video.live).toBe(true);
    await vi.waitFor(() => expect(active).toEqual([true, true, true]), { timeout: 60_000 });
    expect(video.handle({ type: "wanted", publications: [{ publication: "webcam", tiles: [[1]] }] })).toBe(false);
    await vi.waitFor(() => expect(active).toEqual([false, true, false]), { timeout: 60_000 });
    // A new session knows nothing of this.
    video.entered(true, false);
    attach();
    await vi.waitFor(() => expect(active).toEqual([true, true, true]), { timeout: 60_000 });
    video.end();
    expect([track.stopped, fed.size, said.at(-1)]).toEqual([true, 0, { type: "unpublish", publication: "webcam" }]);
  });

  it("tells the server what the uplink does not carry", async () => {
    const { video, said, active, attach, load } = begin();
    video.entered(true, false);
    video.handle({ type: "ok", id: "webcam/1" });
    attach();
    const sender = { bytes: 1000, fps: 20, width: 320, height: 180, limit: "bandwidth" };
    load({ available: 500_000, senders: new Map([["0", sender], ["1", sender], ["2", sender]]) });
    await vi.advanceTimersByTimeAsync(6000);
    expect(active).toEqual([true, true, false]);
    expect(said.at(-1)).toEqual({ type: "uplink", estimate_bps: 500_000, gave_up: [{ publication: "webcam", tile: 0, quality: 2 }] });
    expect(video.state().map((s) => s.fps)).toEqual([20, 20, 0]);
    video.end();
  });

  it("takes only the codec of the publication", () => {
    const { video } = begin();
    const chosen: unknown[] = [];
    video.prepare({ setCodecPreferences: (codecs: unknown) => chosen.push(codecs) } as unknown as RTCRtpTransceiver);
    expect(chosen).toEqual([[{ mimeType: "video/VP8" }, { mimeType: "video/rtx" }]]);
    expect([hasCodec("VP8"), hasCodec("H264")]).toEqual([true, false]);
    video.end();
  });

  it("says why it ended, but not to who has stopped sharing", () => {
    const { video, lost, track } = begin();
    video.entered(true, false);
    video.handle({ type: "error", id: "webcam/1", code: "forbidden", message: "no" });
    expect(lost[0]).toContain("does not permit publishing");
    track.onended!();
    expect(lost[1]).toContain("The webcam was disconnected");
    video.end();
    expect(track.onended).toBeNull();
  });
});

describe("openVideo", () => {
  const devices = (stream: () => Promise<unknown>): void => {
    vi.stubGlobal("isSecureContext", true);
    vi.stubGlobal("navigator", { mediaDevices: { getUserMedia: stream, getDisplayMedia: stream } });
  };
  const open = (kind: "webcam" | "screen", signal = new AbortController().signal) => openVideo(kind, { camera: "", lines: 720 }, signal);

  it.each([
    ["webcam", "NotAllowedError", "was not allowed"], ["webcam", "NotFoundError", "There is no camera"], ["webcam", "NotReadableError", "another program"],
    ["screen", "NotAllowedError", "no screen was chosen"], ["screen", "InvalidStateError", "Press the button again"], ["screen", "NotReadableError", "Choose another one"],
  ] as const)("says what to do about a %s with %s", async (kind, name, words) => {
    devices(() => Promise.reject(new DOMException("no", name)));
    await expect(open(kind)).rejects.toThrow(words);
  });

  it("says what a browser lacks", async () => {
    vi.stubGlobal("isSecureContext", true);
    vi.stubGlobal("navigator", { mediaDevices: {} });
    await expect(open("screen")).rejects.toThrow("This browser cannot share the screen");
    vi.stubGlobal("isSecureContext", false);
    await expect(open("webcam")).rejects.toThrow("Open it over https");
    expect(explainScreen("odd").message).toContain("odd");
  });

  it("returns the size of the picture and the sound, and closes what is no longer wanted", async () => {
    const stopped: string[] = [];
    const track = (kind: string) => ({ kind, getSettings: () => ({ width: 640, height: 480, frameRate: 60 }), stop: () => stopped.push(kind) });
    const [picture, sound] = [track("video"), track("audio")];
    devices(async () => ({ getVideoTracks: () => [picture], getAudioTracks: () => [sound], getTracks: () => [picture, sound] }));
    expect(await open("screen")).toEqual({ track: picture, sound, capture: { width: 640, height: 480, fps: 30 } });
    const over = new AbortController();
    over.abort();
    await expect(open("webcam", over.signal)).rejects.toThrow();
    expect(stopped).toEqual(["video", "audio"]);
  });
});

describe("OwnPublications", () => {
  it("tells what all publications give up in one message", () => {
    const said: ClientMessage[] = [];
    const own = new OwnPublications((m) => said.push(m) > 0);
    own.giveUp("webcam", { estimate: 1, tracks: [] });
    own.giveUp("webcam", { estimate: 1, tracks: [{ tile: 0, quality: 2 }] });
    own.giveUp("body", { estimate: 2, tracks: [{ tile: 1, quality: 1 }] });
    own.giveUp("body", { estimate: 2, tracks: [{ tile: 1, quality: 1 }] });
    own.retract("webcam");
    own.giveUp("body", { estimate: 2, tracks: [] });
    expect(said.filter((m) => m.type === "uplink").map((m) => m.gave_up)).toEqual([
      [{ publication: "webcam", tile: 0, quality: 2 }],
      [{ publication: "webcam", tile: 0, quality: 2 }, { publication: "body", tile: 1, quality: 1 }],
      [],
    ]);
  });
});
