import { describe, expect, it } from "vitest";
import type { DecodedFrame } from "../../src/media/traffic";
import { ServerClock } from "../../src/signal/clock";
import type { FrameTimes, HostClock } from "../../src/signal/messages";
import { FrameLayers } from "../../src/viewer/layers";

const track = { participant: "ada", publication: "body", tile: 1 };
/** An arbitrary instant, in milliseconds since 1970. */
const base = 1_795_188_600_000;

const clock = (bound_ns: number): HostClock => ({ source: "estimated", offset_ns: 0, bound_ns, uncertainty_ns: 0 });

/** The publisher captures at the instant, and has sent after 20 ms. */
function sender(number: number, at: number): FrameTimes {
  return {
    host: "sender", clock: clock(300_000),
    tracks: [{ ...track, quality: 2, frames: [[number, 4000, at * 1000, 0, 1e6, 2e6, 3e6, 4e6, 18e6, 20e6, -1, -1, 21e6, 22e6]] }],
  };
}

/**
 * The server has read after 25 ms, and forwards 2 ms later. The network card's stamp is earlier.
 */
function server(number: number, at: number): FrameTimes {
  return { host: "server", clock: clock(0), tracks: [{ ...track, quality: 2, frames: [[number, 4000, (at + 24) * 1000, 0, -1, 1e6, 2e6, 3e6, -1, -1, 4e6]] }] };
}

/** The frame is complete after 32 ms; this clock is 5 ms behind the server's. */
function frame(number: number, at: number): DecodedFrame {
  const here = at - 5;
  return {
    type: "frame", mid: "3", quality: 2, number, bytes: 4000, captured: at, received: here + 32, decodeBegan: here + 33, decoded: here + 40,
    points: { count: 1, positions: new Float32Array(0), colors: new Uint8Array(0) }, skipped: 0, late: [],
  };
}

const here = { ahead: 5, bound: 0.5 };

/** Ten frames, 100 ms apart, reported in the given order. */
function follow(...tellers: ((number: number, at: number) => FrameTimes)[]): FrameLayers {
  const layers = new FrameLayers();
  layers.follow(true);
  for (let number = 0; number < 10; number++) {
    const at = base + 100 * number;
    const tell = (): void => tellers.forEach((teller) => layers.addStamps(teller(number, at), at + 300));
    if (number % 2 === 0) {
      tell();
    }
    layers.decoded(track, frame(number, at), here);
    layers.shown(track, frame(number, at), at - 5 + 50);
    if (number % 2 === 1) {
      tell();
    }
  }
  return layers;
}

describe("FrameLayers", () => {
  it("divides the way from capture to picture into layers that add up, with the error of the clocks", () => {
    const l = follow(sender, server).figures(track, base + 1500)!;
    const close = { publisher: 20, uplink: 5, toServer: 25, server: 2, downlink: 5, wait: 1, decode: 7, show: 10, all: 50 };
    for (const [name, ms] of Object.entries(close)) {
      expect(l[name as keyof typeof close], name).toBeCloseTo(ms, 2);
    }
    expect(l.publisher + l.uplink + l.server + l.downlink + l.wait + l.decode + l.show).toBeCloseTo(l.all, 6);
    expect(l.bounds).toEqual({ uplink: 0.3, downlink: 0.5, all: 0.8 });
  });

  it("takes the instant of capture from the frame where the publisher does not tell", () => {
    const l = follow(server).figures(track, base + 1500)!;
    expect(l.publisher).toBeNaN();
    expect(l.uplink).toBeNaN();
    expect(l.toServer).toBeCloseTo(25, 2);
    expect(l.all).toBeCloseTo(50, 2);
  });

  it("has the time in other servers and between servers as parts of the way to the server", () => {
    const relay = (number: number, at: number): FrameTimes => ({
      host: "relay", clock: clock(200_000), tracks: [{ ...track, quality: 2, frames: [[number, 0, (at + 10) * 1000, 250, 500_250]] }],
    });
    const later = (number: number, at: number): FrameTimes => ({ ...relay(number, at), host: "later" as "relay" });
    expect(follow(sender, later, server).figures(track, base + 1500)!.relays).toBeUndefined();
    const { relays, uplink } = follow(sender, relay, server).figures(track, base + 1500)!;
    expect(relays!.hold).toBeCloseTo(0.5, 3);
    // The last packet has left the publisher's server after 10.5 ms, and is read after 26 ms.
    expect(relays!.network).toBeCloseTo(15.5, 2);
    expect(relays!.bound).toBeCloseTo(0.2, 6);
    expect(uplink).toBeCloseTo(5, 2);
  });

  it("says nothing of frames that the server has not told of, of other tiles, and of long ago", () => {
    expect(follow(sender).figures(track, base + 1500)).toBeUndefined();
    const layers = follow(sender, server);
    expect(layers.figures({ ...track, tile: 2 }, base + 1500)).toBeUndefined();
    expect(layers.figures(track, base + 10_000)).toBeUndefined();
  });

  it("passes over rows of another length, and stamps that were not taken", () => {
    const layers = follow((number, at) => {
      const told = server(number, at);
      const row = told.tracks[0]!.frames[0]!;
      row[number % 2 === 0 ? 7 : 5] = -1;
      return number < 5 ? told : { ...told, tracks: [{ ...told.tracks[0]!, frames: [row.slice(0, 8)] }] };
    });
    expect(layers.figures(track, base + 1500)).toBeUndefined();
  });

  it("keeps nothing while nobody looks", () => {
    const layers = follow(sender, server);
    layers.follow(false);
    layers.addStamps(server(1, base), base + 100);
    layers.decoded(track, frame(1, base), here);
    layers.shown(track, frame(1, base), base + 50);
    expect(layers.following).toBe(false);
    expect(layers.figures(track, base + 200)).toBeUndefined();
  });
});

describe("ServerClock", () => {
  it("is off by half of the round trip at most, and by more with time", () => {
    const c = new ServerClock();
    expect(c.bound).toBeNaN();
    c.answered(0, 5_000_000, 5_000_000, 2000);
    expect(c.bound).toBeCloseTo(1, 6);
    // Ten seconds later, the error of the slower reply is not smaller than that of the previous
    // one, which has grown by 100 ppm of the time.
    c.answered(10_000_000, 15_000_000, 15_000_000, 10_006_000);
    expect(c.bound).toBeCloseTo(2.0004, 6);
    c.answered(30_000_000, 35_000_000, 35_000_000, 30_005_000);
    expect(c.bound).toBeCloseTo(2.5, 6);
  });
});
