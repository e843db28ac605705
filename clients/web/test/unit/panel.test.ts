import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Conference } from "../../src/viewer/conference";
import { stubElements } from "./elements";

/** A device that records whether it is open. */
class Device {
  open = true;
  aspect = 1;
  ended: () => void = () => {};
  close(): void {
    this.open = false;
  }
  stop(): void {
    this.open = false;
  }
}

/** A request to the user that a test permits or rejects. */
class Asked {
  answers: { allow: (device: Device) => void; refuse: (error: Error) => void }[] = [];
  readonly ask = (): Promise<Device> => new Promise((allow, refuse) => this.answers.push({ allow, refuse }));
}

const world = vi.hoisted(() => ({
  kind: "camera", speaks: true, said: [] as string[], begun: 0, ended: 0, voices: 0, silence: undefined as unknown as (why: string) => void, camera: undefined as unknown as Asked, microphone: undefined as unknown as Asked, xr: undefined as unknown as Asked,
}));

vi.mock("../../src/publish/panel.css", () => ({}));
vi.mock("../../src/publish/setup", () => ({
  Setup: class {
    element = { hidden: false };
    camera = "";
    get wishes(): object {
      return { kind: world.kind, fps: 15 };
    }
    get speaks(): boolean {
      return world.speaks;
    }
    trouble(message: string): void {
      world.said.push(message);
    }
  },
}));
vi.mock("../../src/publish/live", () => ({
  LivePanel: class {
    element = { hidden: false };
    mirror(): void {}
    focus(): void {}
    show(): void {}
  },
}));
vi.mock("../../src/publish/video/section", () => ({
  VideoSection: class {
    element = {};
    active = false;
    close(): void {}
  },
}));
vi.mock("../../src/publish/wishes", () => ({ planOf: () => ({ tiles: 1 }) }));
vi.mock("../../src/publish/publisher", () => ({
  startCrew: () => ({}),
  Publisher: class {
    constructor() {
      world.begun++;
    }
    state(): object {
      return {};
    }
    end(): void {
      world.ended++;
    }
  },
}));
vi.mock("../../src/publish/camera", () => ({ Lacking: class extends Error {}, DepthCamera: { open: () => world.camera.ask() } }));
vi.mock("../../src/publish/xr", () => ({ DepthOfXR: { open: () => world.xr.ask() } }));
vi.mock("../../src/publish/voice", () => ({
  openMicrophone: () => world.microphone.ask(),
  Voice: class {
    constructor(_: Conference, private readonly track: Device, lost: (why: string) => void) {
      world.voices++;
      world.silence = lost;
    }
    end(): void {
      world.voices--;
      this.track.stop();
    }
  },
}));

const { Panel } = await import("../../src/publish/panel");

describe("Panel", () => {
  beforeEach(() => {
    stubElements();
    Object.assign(world, { kind: "camera", speaks: true, said: [], begun: 0, ended: 0, voices: 0, camera: new Asked(), microphone: new Asked(), xr: new Asked() });
  });
  afterEach(() => vi.unstubAllGlobals());

  const make = (): InstanceType<typeof Panel> => {
    const conference = { identity: "ada", participants: new Map(), publish: () => {}, unpublish: () => {} } as unknown as Conference;
    return new Panel(conference, { points: {}, video: {} } as never, (message) => world.said.push(message), () => {});
  };
  const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

  it("publishes once camera and microphone are there", async () => {
    const panel = make();
    const started = panel.start();
    const [camera, microphone] = [new Device(), new Device()];
    world.camera.answers[0]!.allow(camera);
    await settled();
    world.microphone.answers[0]!.allow(microphone);
    await started;
    expect([world.begun, world.voices, camera.open, microphone.open]).toEqual([1, 1, true, true]);
    panel.stop();
    expect([world.ended, world.voices, camera.open, microphone.open]).toEqual([1, 0, false, false]);
  });

  it("goes on without a microphone that was taken away, and says so", async () => {
    Object.assign(world, { kind: "figure" });
    const panel = make();
    const started = panel.start();
    await settled();
    const microphone = new Device();
    world.microphone.answers[0]!.allow(microphone);
    await started;
    world.silence("taken away");
    expect([world.begun, world.ended, world.voices, microphone.open, world.said.at(-1)]).toEqual([1, 0, 0, false, "taken away"]);
    panel.stop();
    expect([world.ended, world.voices]).toEqual([1, 0]);
  });

  it("closes a camera that is allowed when the room was left", async () => {
    const panel = make();
    const started = panel.start();
    panel.stop();
    const camera = new Device();
    world.camera.answers[0]!.allow(camera);
    await started;
    expect([camera.open, world.microphone.answers.length, world.begun]).toEqual([false, 0, 0]);
    expect(world.said.filter(Boolean)).toEqual([]);
  });

  it("closes camera and microphone where the room was left between the two", async () => {
    const panel = make();
    const started = panel.start();
    const [camera, microphone] = [new Device(), new Device()];
    world.camera.answers[0]!.allow(camera);
    await settled();
    panel.stop();
    expect(camera.open).toBe(false);
    world.microphone.answers[0]!.allow(microphone);
    await started;
    expect([microphone.open, world.voices, world.begun]).toEqual([false, 0, 0]);
  });

  it("begins anew while what was called off still waits", async () => {
    Object.assign(world, { kind: "xr", speaks: false });
    const panel = make();
    const first = panel.start();
    panel.stop();
    const second = panel.start();
    const [before, after] = [new Device(), new Device()];
    world.xr.answers[0]!.allow(before);
    await first;
    expect([before.open, world.begun]).toEqual([false, 0]);
    world.xr.answers[1]!.allow(after);
    await second;
    expect([after.open, world.begun]).toEqual([true, 1]);
    // The end of an earlier device does not end the present one.
    before.ended();
    expect(world.ended).toBe(0);
    after.ended();
    expect(world.ended).toBe(1);
  });

  it("says why nothing was opened, but not to who has called it off", async () => {
    const panel = make();
    const first = panel.start();
    world.camera.answers[0]!.refuse(new Error("no camera"));
    await first;
    expect(world.said.filter(Boolean)).toEqual(["Publishing failed: no camera"]);
    const second = panel.start();
    panel.stop();
    world.camera.answers[1]!.refuse(new Error("no camera, either"));
    await second;
    expect(world.said.filter(Boolean).length).toBe(1);
  });
});

describe("VideoSection", () => {
  beforeEach(stubElements);
  afterEach(() => vi.unstubAllGlobals());

  it("opens no device on a page with a key, and says why", async () => {
    const { noEncryption, VideoSection } = await vi.importActual<typeof import("../../src/publish/video/section")>("../../src/publish/video/section");
    const asked = vi.fn();
    vi.stubGlobal("isSecureContext", true);
    vi.stubGlobal("navigator", { mediaDevices: { getUserMedia: asked, getDisplayMedia: asked } });
    const section = new VideoSection({ encryption: {} } as unknown as Conference, { webcam: false, alone: false, codec: "VP8", lines: 720 }, () => {}, () => {});
    const texts = (of: { children?: unknown[]; textContent?: string; hidden?: boolean }): string[] =>
      of.hidden ? [] : [of.textContent ?? "", ...(of.children ?? []).flatMap((c) => (typeof c === "string" ? [] : texts(c as object)))];
    expect(texts(section.element as never)).toContain(noEncryption);
    await section.start("webcam");
    await section.start("screen");
    expect([asked.mock.calls.length, section.active]).toEqual([0, false]);
  });
});
