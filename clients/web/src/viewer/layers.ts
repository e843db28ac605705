// The delay of frames by layer, combined from the times of publisher, server and this page
// (docs/latency.md, docs/signalling.md "Times of frames").

import type { DecodedFrame } from "../media/traffic";
import type { FrameTimes, TileRef } from "../signal/messages";

/**
 * Frames are kept for this time after their first report, in milliseconds: reports of server and
 * publisher are up to half a second late.
 */
const span = 3000;

/**
 * The offset of stamps in the numbers of a frame: after its number, its bytes, and the time of the
 * first stamp.
 */
const head = 3;
/** Capture, and first packet sent. */
const sender = { length: head + 11, from: head, to: head + 6 };
/** First packet read, and forwarded; last packet read. */
const server = { length: head + 8, from: head + 2, to: head + 4, last: head + 3 };
/** Last packet read by the publisher's server, and forwarded, if that is another server. */
const relay = { length: head + 2, from: head, to: head + 1 };
/** By host. Later servers may name others. */
const hosts = new Map<string, { length: number; from: number; to: number }>([["sender", sender], ["server", server], ["relay", relay]]);

interface Stay {
  from: number;
  to: number;
  bound: number;
}

/**
 * The known times of a frame: milliseconds since 1970 by the server's clock, with the maximum error
 * of each host.
 */
interface Frame {
  since: number;
  sender?: Stay;
  server?: Stay & { last: number };
  relay?: Stay;
  page?: { captured: number; received: number; decodeBegan: number; decoded: number; shown: number; ahead: number; bound: number };
}

/** A frame with all times except those of its publisher. */
type Whole = Frame & Required<Pick<Frame, "server" | "page">>;

/**
 * The layers of one tile's frames in milliseconds, as means over the last seconds: their sum is the
 * total.
 */
export interface Layers {
  /** Capture until the first packet leaves, NaN if the publisher does not report it. */
  publisher: number;
  /** From there to the server, also NaN then. */
  uplink: number;
  /** The sum of both, for publishers without reports. */
  toServer: number;
  /**
   * The parts of the uplink in the servers before this page's server and between servers, with the
   * maximum error of the latter; undefined if the publisher is on the same server.
   */
  relays: { hold: number; network: number; bound: number } | undefined;
  /** From there until the server forwards it. */
  server: number;
  /** From there until the complete frame has arrived. */
  downlink: number;
  wait: number;
  decode: number;
  show: number;
  /** From capture until the picture is drawn. */
  all: number;
  /** The maximum errors of layers between two hosts, due to those of their clocks. */
  bounds: { uplink: number; downlink: number; all: number };
}

export class FrameLayers {
  /** By tile, then by quality and number. */
  private readonly tiles = new Map<string, Map<string, Frame>>();
  private on = false;

  /** Frames are followed only while the inspector is open. */
  get following(): boolean {
    return this.on;
  }

  follow(on: boolean): void {
    this.on = on;
    this.tiles.clear();
  }

  /** Adds times of frames from the publisher or servers. */
  addStamps({ host, clock, tracks }: FrameTimes, now: number): void {
    if (!this.on) {
      return;
    }
    this.prune(now);
    const bound = clock.bound_ns / 1e6;
    const where = hosts.get(host);
    if (!where) {
      return;
    }
    for (const track of tracks) {
      for (const row of track.frames) {
        const [from, to] = [stamp(row, where.from), stamp(row, where.to)];
        if (row.length !== where.length || !Number.isFinite(to - from)) {
          continue;
        }
        const frame = this.frame(track, track.quality, row[0]!, now);
        if (host === "server") {
          frame.server = { from, to, bound, last: stamp(row, server.last) };
        } else {
          frame[host] = { from, to, bound };
        }
      }
    }
  }

  /** Adds a frame decoded by this page. The clock is this page's estimate of the server's. */
  decoded(track: TileRef, f: DecodedFrame, clock: { readonly ahead: number; readonly bound: number }): void {
    if (this.on) {
      const { captured, received, decodeBegan, decoded } = f;
      const { ahead, bound } = clock;
      this.frame(track, f.quality, f.number, decoded).page = {
        captured, received: received + ahead, decodeBegan: decodeBegan + ahead, decoded: decoded + ahead, shown: NaN, ahead, bound,
      };
    }
  }

  /** Records that a frame was drawn. */
  shown(track: TileRef, { quality, number }: { quality: number; number: number }, at: number): void {
    const page = this.tiles.get(tileKey(track))?.get(`${quality}/${number}`)?.page;
    if (page) {
      page.shown = at + page.ahead;
    }
  }

  /**
   * Returns the layers of a tile; undefined until the server has reported frames that were drawn.
   */
  figures(track: TileRef, now: number): Layers | undefined {
    this.prune(now);
    const whole = [...(this.tiles.get(tileKey(track))?.values() ?? [])].filter((f): f is Whole => f.server !== undefined && Number.isFinite(f.page?.shown));
    const complete = whole.filter((f) => f.sender);
    const frames = complete.length > 0 ? complete : whole;
    if (frames.length === 0) {
      return undefined;
    }
    const mean = (pick: (f: Whole) => number): number => frames.reduce((sum, f) => sum + pick(f), 0) / frames.length;
    const worst = (pick: (f: Whole) => number): number => frames.reduce((most, f) => Math.max(most, pick(f)), 0);
    const relayed = frames.flatMap(({ server, relay }) => relay && Number.isFinite(server.last)
      ? [{ hold: relay.to - relay.from, network: server.last - relay.to, bound: relay.bound + server.bound }] : []);
    const part = (pick: (r: (typeof relayed)[number]) => number): number => relayed.reduce((sum, r) => sum + pick(r), 0) / relayed.length;
    const captured = (f: Whole): number => f.sender?.from ?? f.page.captured;
    return {
      publisher: mean((f) => (f.sender?.to ?? NaN) - captured(f)),
      uplink: mean((f) => f.server.from - (f.sender?.to ?? NaN)),
      toServer: mean((f) => f.server.from - captured(f)),
      relays: relayed.length === 0 ? undefined : {
        hold: part((r) => r.hold), network: part((r) => r.network), bound: relayed.reduce((most, r) => Math.max(most, r.bound), 0),
      },
      server: mean((f) => f.server.to - f.server.from),
      downlink: mean((f) => f.page.received - f.server.to),
      wait: mean((f) => f.page.decodeBegan - f.page.received),
      decode: mean((f) => f.page.decoded - f.page.decodeBegan),
      show: mean((f) => f.page.shown - f.page.decoded),
      all: mean((f) => f.page.shown - captured(f)),
      bounds: {
        uplink: worst((f) => (f.sender?.bound ?? 0) + f.server.bound), downlink: worst((f) => f.server.bound + f.page.bound),
        all: worst((f) => (f.sender?.bound ?? 0) + f.page.bound),
      },
    };
  }

  private frame(track: TileRef, quality: number, number: number, now: number): Frame {
    const key = tileKey(track);
    const frames = this.tiles.get(key) ?? new Map<string, Frame>();
    this.tiles.set(key, frames);
    const frame = frames.get(`${quality}/${number}`) ?? { since: now };
    frames.set(`${quality}/${number}`, frame);
    return frame;
  }

  private prune(now: number): void {
    for (const [key, frames] of this.tiles) {
      for (const [name, frame] of frames) {
        if (frame.since >= now - span) {
          break;
        }
        frames.delete(name);
      }
      if (frames.size === 0) {
        this.tiles.delete(key);
      }
    }
  }
}

function tileKey({ participant, publication, tile }: TileRef): string {
  return `${participant}\n${publication}\n${tile}`;
}

/**
 * Returns a stamp in milliseconds since 1970: the first stamp in microseconds plus an offset in
 * nanoseconds; NaN if it is missing.
 */
function stamp(row: readonly number[], at: number): number {
  const after = row[at] ?? -1;
  return after < 0 ? NaN : (row[2] ?? NaN) / 1000 + after / 1e6;
}
