import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Sound } from "../../src/viewer/sound";

/** The players of a track: an element, which Chromium needs, and a node. */
interface Playing {
  track: MediaStreamTrack;
  paused: boolean;
  connected: boolean;
}

let playing: Playing[];
let contexts: { state: string; onstatechange: (() => void) | null }[];
const track = (id: string): MediaStreamTrack => ({ id }) as MediaStreamTrack;

describe("Sound", () => {
  beforeEach(() => {
    playing = [];
    contexts = [];
    class Stream {
      constructor(readonly tracks: MediaStreamTrack[]) {}
    }
    class Element {
      srcObject: Stream | null = null;
      private mine: Playing | undefined;
      play(): Promise<void> {
        this.mine = { track: this.srcObject!.tracks[0]!, paused: false, connected: false };
        playing.push(this.mine);
        return Promise.resolve();
      }
      pause(): void {
        this.mine!.paused = true;
      }
    }
    class Context {
      state = "suspended";
      onstatechange: (() => void) | null = null;
      destination = {};
      constructor() {
        contexts.push(this);
      }
      resume = async (): Promise<void> => void (this.state = "running");
      close = async (): Promise<void> => void (this.state = "closed");
      createMediaStreamSource = (stream: Stream): object => {
        const mine = playing.find((p) => p.track === stream.tracks[0])!;
        return { connect: (to: object) => ((mine.connected = true), to), disconnect: () => (mine.connected = false) };
      };
    }
    vi.stubGlobal("MediaStream", Stream);
    vi.stubGlobal("Audio", Element);
    vi.stubGlobal("AudioContext", Context);
    vi.stubGlobal("AnalyserNode", class {
      getFloatTimeDomainData(samples: Float32Array): void {
        samples.fill(0.06);
      }
    });
    vi.stubGlobal("PannerNode", class {
      connect(): void {}
      disconnect(): void {}
    });
  });
  afterEach(() => vi.unstubAllGlobals());

  it("plays a track once, and the new one of a line after a reconnect", async () => {
    const sound = new Sound();
    const [before, after] = [track("before"), track("after")];
    sound.add("4", before);
    expect(playing).toEqual([]);
    expect(await sound.toggle()).toBe(true);
    sound.add("4", before);
    expect(playing).toEqual([{ track: before, paused: false, connected: true }]);
    sound.add("4", after);
    expect(playing).toEqual([{ track: before, paused: true, connected: false }, { track: after, paused: false, connected: true }]);
    expect(sound.level("4")).toBeCloseTo(0.5, 6);
    expect(sound.level("5")).toBe(0);
    sound.add("6", track("other"));
    sound.remove("6");
    sound.remove("7");
    expect(playing.map((p) => p.connected)).toEqual([false, true, false]);
    sound.close();
    expect(sound.level("4")).toBe(0);
    expect(playing.every((p) => p.paused && !p.connected)).toBe(true);
  });

  it("reports that the system has interrupted it, and continues", async () => {
    const told: boolean[] = [];
    const sound = new Sound((on) => told.push(on));
    await sound.toggle();
    const [context] = contexts;
    Object.assign(context!, { state: "interrupted" }).onstatechange!();
    expect(told).toEqual([false]);
    expect(await sound.toggle()).toBe(true);
    sound.close();
    expect([contexts.length, context!.onstatechange]).toEqual([1, null]);
  });
});
