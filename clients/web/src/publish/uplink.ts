// What waits to be sent on a publication's data channel: of every track the newest frame only, newest captures first, and never more in the channel than it sends
// within a moment, since what is in there can be neither overtaken nor taken back.

import { chunkOf, chunksOf, type OutgoingFrame } from "./chunks";
import { Outflow } from "./outflow";

/** What of an RTCDataChannel is used. */
export interface Channel {
  readonly readyState: RTCDataChannelState;
  readonly bufferedAmount: number;
  bufferedAmountLowThreshold: number;
  onbufferedamountlow: ((event: Event) => unknown) | null;
  send(data: Uint8Array<ArrayBuffer>): void;
}

/** Another chunk is put into the channel once it holds no more than it sends in so many milliseconds, so that it runs dry for no longer than a page is late. */
const ahead = 100;
/** A page that draws is late by tenths of seconds, and Chromium tells of less than 100 KiB only once the channel is empty. So slow channels hold what they send in so many milliseconds, */
const longestAhead = 300;
/** up to so many bytes, which is that of 0.9 Mbit/s, and what a channel may hold of which nothing is known. */
const commonRoom = 32_000;
/** A packet at least; */
const leastRoom = 1200;
/** and no more than is of use at any rate that browsers reach: 100 Mbit/s for 80 ms. */
const mostRoom = 1_000_000;

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
  /** What leaves the channel. */
  private outflow = new Outflow();
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
    this.abandon();
    this.outflow = new Outflow();
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

  /** Leaves out the rest of a frame that is not in the channel to its end: the server makes nothing of what is there. */
  abandon(): void {
    if (this.current) {
      this.current = undefined;
      this.account.dropped++;
    }
  }

  /** What became of frames since the last call. */
  take(): Account {
    const account = this.account;
    this.account = { sent: 0, dropped: 0, bytes: 0 };
    return account;
  }

  /** What leaves the channel in bit/s while it has something; undefined where that is not known. */
  get rate(): number | undefined {
    return this.outflow.rate(this.now());
  }

  /** For how many milliseconds what is in the channel has been overdue, none of it having left. */
  get stalled(): number {
    return this.outflow.stalled(this.now());
  }

  /** Bytes that are in the channel, and leave it before anything else. */
  get queued(): number {
    return this.channel?.bufferedAmount ?? 0;
  }

  /** How many bytes may be in the channel when another chunk is put into it. */
  private get room(): number {
    const { rate } = this;
    if (rate === undefined) {
      return commonRoom;
    }
    const slow = Math.max(leastRoom, Math.min((rate / 8000) * longestAhead, commonRoom));
    return Math.min(Math.max((rate / 8000) * ahead, slow), mostRoom);
  }

  /** Sends as much as there is room for. */
  pump(): void {
    const channel = this.channel;
    if (channel?.readyState !== "open") {
      return;
    }
    this.look(channel);
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
      this.look(channel);
      if (++this.current.next === chunksOf(frame.data.length)) {
        this.current = undefined;
        this.account.sent++;
        this.sent(frame);
      }
    }
  }

  private look(channel: Channel): void {
    this.outflow.look(this.now(), this.handed - channel.bufferedAmount, channel.bufferedAmount);
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
