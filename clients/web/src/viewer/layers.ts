// Where the time of frames goes: what publisher, server and this page say of each, put together (docs/latency.md, docs/signalling.md "Times of frames").

import type { DecodedFrame } from "../media/traffic";
import type { FrameTimes, TileRef } from "../signal/messages";

/** Frames are kept so long after they were first heard of, in milliseconds: what server and publisher say comes up to half a second later. */
const span = 3000;

/** Where stamps stand in the numbers of a frame: behind its number, its bytes, and when the first of them was taken. */
const head = 3;
/** Captured, and first packet sent. */
const sender = { length: head + 11, from: head, to: head + 6 };
/** First packet read, and sent on. */
const server = { length: head + 8, from: head + 2, to: head + 4 };

interface Stay {
  from: number;
  to: number;
  bound: number;
}

/** What is known of a frame: milliseconds since 1970 by the server's clock, and how far each host may be off. */
interface Frame {
  since: number;
  sender?: Stay;
  server?: Stay;
  page?: { captured: number; received: number; decodeBegan: number; decoded: number; shown: number; ahead: number; bound: number };
}

/** A frame of which everything is known but what its publisher did. */
type Whole = Frame & Required<Pick<Frame, "server" | "page">>;

/** The layers of one tile's frames, in milliseconds, as means over the last seconds: they add up to the whole. */
export interface Layers {
  /** Capture until the first packet leaves, NaN where the publisher does not tell. */
  publisher: number;
  /** Until the server has it, NaN likewise. */
  uplink: number;
  /** Both of them together: what is left to say where the publisher does not tell. */
  toServer: number;
  /** Until the server sends it on. */
  server: number;
  /** Until all of the frame is here. */
  downlink: number;
  wait: number;
  decode: number;
  show: number;
  /** From capture until the picture is drawn. */
  all: number;
  /** How far the layers between two hosts may be off at most, since their clocks are. */
  bounds: { uplink: number; downlink: number; all: number };
}

export class FrameLayers {
  /** By tile, then by quality and number. */
  private readonly tiles = new Map<string, Map<string, Frame>>();
  private on = false;

  /** Frames are followed: only while somebody looks. */
  get following(): boolean {
    return this.on;
  }

  follow(on: boolean): void {
    this.on = on;
    this.tiles.clear();
  }

  /** Takes what the publisher or the server says of frames. */
  told({ host, clock, tracks }: FrameTimes, now: number): void {
    if (!this.on) {
      return;
    }
    this.prune(now);
    const bound = clock.bound_ns / 1e6;
    for (const track of tracks) {
      for (const row of track.frames) {
        const where = host === "sender" ? sender : server;
        const [from, to] = [stamp(row, where.from), stamp(row, where.to)];
        if (row.length === where.length && Number.isFinite(to - from)) {
          this.frame(track, track.quality, row[0]!, now)[host] = { from, to, bound };
        }
      }
    }
  }

  /** Takes a frame that this page has decoded. The clock is the server's, as it is known here. */
  decoded(track: TileRef, f: DecodedFrame, clock: { readonly ahead: number; readonly bound: number }): void {
    if (this.on) {
      const { captured, received, decodeBegan, decoded } = f;
      const { ahead, bound } = clock;
      this.frame(track, f.quality, f.number, decoded).page = {
        captured, received: received + ahead, decodeBegan: decodeBegan + ahead, decoded: decoded + ahead, shown: NaN, ahead, bound,
      };
    }
  }

  /** Takes that a frame was drawn. */
  shown(track: TileRef, { quality, number }: { quality: number; number: number }, at: number): void {
    const page = this.tiles.get(tileKey(track))?.get(`${quality}/${number}`)?.page;
    if (page) {
      page.shown = at + page.ahead;
    }
  }

  /** What is known of a tile; nothing until the server has told of frames that were drawn. */
  figures(track: TileRef, now: number): Layers | undefined {
    this.prune(now);
    const whole = [...(this.tiles.get(tileKey(track))?.values() ?? [])].filter((f): f is Whole => f.server !== undefined && Number.isFinite(f.page?.shown));
    const told = whole.filter((f) => f.sender);
    const frames = told.length > 0 ? told : whole;
    if (frames.length === 0) {
      return undefined;
    }
    const mean = (pick: (f: Whole) => number): number => frames.reduce((sum, f) => sum + pick(f), 0) / frames.length;
    const worst = (pick: (f: Whole) => number): number => frames.reduce((most, f) => Math.max(most, pick(f)), 0);
    const captured = (f: Whole): number => f.sender?.from ?? f.page.captured;
    return {
      publisher: mean((f) => (f.sender?.to ?? NaN) - captured(f)),
      uplink: mean((f) => f.server.from - (f.sender?.to ?? NaN)),
      toServer: mean((f) => f.server.from - captured(f)),
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

/** A stamp in milliseconds since 1970: microseconds of the first of them, and nanoseconds after it; NaN where it was not taken. */
function stamp(row: readonly number[], at: number): number {
  const after = row[at] ?? -1;
  return after < 0 ? NaN : (row[2] ?? NaN) / 1000 + after / 1e6;
}
