// The queue of a publication's data channel: only the newest frame of every track, newest captures
// first. The channel never contains more than it can send in a short time, since its content can be
// neither overtaken nor removed.

import { chunkOf, chunksOf, type OutgoingFrame } from "./chunks";
import { Outflow } from "./outflow";

/** The used parts of an RTCDataChannel. */
export interface Channel {
  readonly readyState: RTCDataChannelState;
  readonly bufferedAmount: number;
  bufferedAmountLowThreshold: number;
  onbufferedamountlow: ((event: Event) => unknown) | null;
  send(data: Uint8Array<ArrayBuffer>): void;
}

/**
 * Another chunk is added once the channel holds no more than it sends in this time in milliseconds.
 * The channel then becomes empty only if the page is delayed for longer.
 */
const ahead = 100;
/**
 * The same time for slow channels. A page that draws can be late by tenths of seconds, and Chromium
 * reports less than 100 KiB only once the channel is empty.
 */
const longestAhead = 300;
/**
 * The limit in bytes of the longer time, which corresponds to 0.9 Mbit/s. It also applies to a
 * channel with an unknown rate.
 */
const commonRoom = 32_000;
/** The minimum is one packet. */
const leastRoom = 1200;
/** The maximum is sufficient for any rate that browsers reach: 100 Mbit/s for 80 ms. */
const mostRoom = 1_000_000;

/** The results of frames since the last call. */
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
  /** Measures the output of the channel. */
  private outflow = new Outflow();
  private handed = 0;

  /**
   * @param tiles is the number of tiles, which take turns in being first
   * @param sent is called for every frame that is completely in the channel
   * @param now returns milliseconds
   */
  constructor(
    private readonly tiles: number,
    private readonly sent: (frame: OutgoingFrame) => void,
    private readonly now: () => number,
  ) {}

  /** Replaces the channel. Frames that were sent only partly are lost. */
  connect(channel: Channel): void {
    this.channel = channel;
    this.abandon();
    this.outflow = new Outflow();
    this.handed = 0;
    channel.onbufferedamountlow = () => this.pump();
    this.pump();
  }

  /** Adds a frame, and replaces a waiting one of the same track. */
  offer(frame: OutgoingFrame): void {
    const key = `${frame.tile}/${frame.quality}`;
    if (this.waiting.has(key)) {
      this.account.dropped++;
    }
    this.waiting.set(key, frame);
    this.pump();
  }

  /** Removes waiting frames without a receiver. */
  keepOnly(taken: (tile: number, quality: number) => boolean): void {
    for (const [key, { tile, quality }] of this.waiting) {
      if (!taken(tile, quality)) {
        this.waiting.delete(key);
      }
    }
  }

  /** Drops the rest of a partly sent frame: the server discards the incomplete frame. */
  abandon(): void {
    if (this.current) {
      this.current = undefined;
      this.account.dropped++;
    }
  }

  /** Returns the results of frames since the last call. */
  take(): Account {
    const account = this.account;
    this.account = { sent: 0, dropped: 0, bytes: 0 };
    return account;
  }

  /** The output rate of the channel in bit/s while it has data; undefined if unknown. */
  get rate(): number | undefined {
    return this.outflow.rate(this.now());
  }

  /** The milliseconds for which data in the channel has been overdue without progress. */
  get stalled(): number {
    return this.outflow.stalled(this.now());
  }

  /** The bytes in the channel, which leave before anything else. */
  get queued(): number {
    return this.channel?.bufferedAmount ?? 0;
  }

  /** The maximum number of bytes in the channel before another chunk is added. */
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

  /**
   * Returns the next frame to send: of the newest capture, lower qualities first, and tiles in
   * turn, so that all tiles progress if not everything can be sent.
   */
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
