// What waits to be sent on a publication's data channel: of every track the newest frame only, newest captures first, and never more in the channel than it sends
// within a moment, since what is in there can be neither overtaken nor taken back.

import { chunkOf, chunksOf, type OutgoingFrame } from "./chunks";

/** What of an RTCDataChannel is used. */
export interface Channel {
  readonly readyState: RTCDataChannelState;
  readonly bufferedAmount: number;
  bufferedAmountLowThreshold: number;
  onbufferedamountlow: ((event: Event) => unknown) | null;
  send(data: Uint8Array<ArrayBuffer>): void;
}

/** Another chunk is put into the channel once it holds no more than it sends in so many milliseconds, so that it never runs dry between two events. */
const ahead = 50;
/** A page that draws may be late by more than that: 32 kB last for a quarter of a second at 1 Mbit/s. */
const leastRoom = 32_000;
/** More would be no use at any rate that browsers reach: 100 Mbit/s for 80 ms. */
const mostRoom = 1_000_000;
/** The rate is measured over as many milliseconds. */
const span = 1000;

/** What became of frames since the last look. */
export interface Account {
  sent: number;
  dropped: number;
  bytes: number;
}

export class Uplink {
  private readonly waiting = new Map<string, OutgoingFrame>();
  private current: { frame: OutgoingFrame; next: number } | undefined;
  private channel: Channel | undefined;
  private account: Account = { sent: 0, dropped: 0, bytes: 0 };
  /** Bytes that have left the channel, by when, while it was never empty. */
  private drained: { at: number; bytes: number }[] = [];
  private handed = 0;

  /**
   * @param tiles is how many there are: they take turns in being first
   * @param sent hears of every frame that is in the channel to its end
   * @param now gives milliseconds
   */
  constructor(
    private readonly tiles: number,
    private readonly sent: (frame: OutgoingFrame) => void,
    private readonly now: () => number,
  ) {}

  /** Takes a channel in place of the one before. What had begun there will never be whole. */
  connect(channel: Channel): void {
    this.channel = channel;
    if (this.current) {
      this.current = undefined;
      this.account.dropped++;
    }
    this.drained = [];
    this.handed = 0;
    channel.onbufferedamountlow = () => this.pump();
    this.pump();
  }

  /** Puts a frame in place of one of the same track that still waits. */
  offer(frame: OutgoingFrame): void {
    const key = `${frame.tile}/${frame.quality}`;
    if (this.waiting.has(key)) {
      this.account.dropped++;
    }
    this.waiting.set(key, frame);
    this.pump();
  }

  /** Forgets what waits and nobody takes any more. */
  keepOnly(taken: (tile: number, quality: number) => boolean): void {
    for (const [key, { tile, quality }] of this.waiting) {
      if (!taken(tile, quality)) {
        this.waiting.delete(key);
      }
    }
  }

  /** What became of frames since the last call. */
  take(): Account {
    const account = this.account;
    this.account = { sent: 0, dropped: 0, bytes: 0 };
    return account;
  }

  /** What the uplink carries in bit/s, where it was what held frames up; undefined where it carried all there was. */
  get rate(): number | undefined {
    const first = this.drained[0];
    const last = this.drained.at(-1);
    if (!first || !last || last.at - first.at < span / 2) {
      return undefined;
    }
    return ((last.bytes - first.bytes) * 8000) / (last.at - first.at);
  }

  /** Bytes that are in the channel, and leave it before anything else. */
  get queued(): number {
    return this.channel?.bufferedAmount ?? 0;
  }

  /** How many bytes may be in the channel when another chunk is put into it. */
  private get room(): number {
    const rate = this.rate;
    return rate === undefined ? leastRoom : Math.min(Math.max((rate / 8000) * ahead, leastRoom), mostRoom);
  }

  /** Sends as much as there is room for. */
  pump(): void {
    const channel = this.channel;
    if (channel?.readyState !== "open") {
      return;
    }
    this.measure(channel);
    const room = this.room;
    channel.bufferedAmountLowThreshold = room;
    while (channel.bufferedAmount <= room) {
      this.current ??= this.next();
      if (!this.current) {
        return;
      }
      const { frame, next } = this.current;
      const chunk = chunkOf(frame, next);
      channel.send(chunk);
      this.handed += chunk.length;
      this.account.bytes += chunk.length;
      if (++this.current.next === chunksOf(frame.data.length)) {
        this.current = undefined;
        this.account.sent++;
        this.sent(frame);
      }
    }
  }

  /** Notes what has left the channel. A channel that ran empty says nothing of what the uplink carries. */
  private measure(channel: Channel): void {
    const at = this.now();
    if (channel.bufferedAmount === 0) {
      this.drained = [];
      return;
    }
    this.drained.push({ at, bytes: this.handed - channel.bufferedAmount });
    const first = this.drained.findIndex((d) => d.at >= at - span);
    this.drained.splice(0, Math.max(0, first - 1));
  }

  /** Takes what is to be sent next: of the newest capture, lower qualities first, and tiles in turn, so that none starves where not all can be sent. */
  private next(): { frame: OutgoingFrame; next: number } | undefined {
    let best: OutgoingFrame | undefined;
    for (const frame of this.waiting.values()) {
      if (!best || this.before(frame, best)) {
        best = frame;
      }
    }
    if (!best) {
      return undefined;
    }
    this.waiting.delete(`${best.tile}/${best.quality}`);
    return { frame: best, next: 0 };
  }

  private before(a: OutgoingFrame, b: OutgoingFrame): boolean {
    if (a.number !== b.number) {
      return ((a.number - b.number) | 0) > 0;
    }
    return a.quality !== b.quality ? a.quality < b.quality : (a.tile + a.number) % this.tiles < (b.tile + b.number) % this.tiles;
  }
}
