// The queue of a publication's data channel: only the newest frame of every track, newest captures
// first. The channel never contains more than it can send in a short time, since its content can be
// neither overtaken nor removed. The channel does not repeat lost messages: SCTP would repeat them
// too late, and the server requests them.

import { chunkOf, chunksOf, type OutgoingFrame } from "./chunks";
import { History, type Sent } from "./history";
import { Outflow } from "./outflow";

/** The used parts of an RTCDataChannel. */
export interface Channel {
  readonly readyState: RTCDataChannelState;
  readonly bufferedAmount: number;
  bufferedAmountLowThreshold: number;
  binaryType: BinaryType;
  onbufferedamountlow: ((event: Event) => unknown) | null;
  onmessage: ((event: MessageEvent) => unknown) | null;
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
/** The number of chunks that are added to the channel at once: 64 kB. */
const group = 56;
/**
 * While chunks are lost, the last chunk is repeated if no other follows, in milliseconds after the
 * last one. SCTP notices a loss by three acknowledgements of later packets, or else after 400 ms,
 * and then begins with a window of one packet.
 */
const tailInterval = 10;
const tailRepeats = 4;
/** The time in milliseconds after a request in which chunks count as being lost. */
const lossy = 5000;
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
  private history = new History();
  private requested = -Infinity;

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
    this.history = new History();
    channel.binaryType = "arraybuffer";
    channel.onmessage = ({ data }: MessageEvent<unknown>) => data instanceof ArrayBuffer && this.repeat(channel, data);
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

  /** Reports whether everything that was added has left. */
  get empty(): boolean {
    return this.waiting.size === 0 && !this.current && this.queued === 0;
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
      const count = chunksOf(frame.data.length);
      this.current.next = Math.min(next + group, count);
      for (let index = next; index < this.current.next; index++) {
        const sent = { message: chunkOf(frame, index, this.history.next), end: 0 };
        this.history.add(sent);
        this.send(channel, sent);
      }
      this.look(channel);
      if (this.current.next === count) {
        this.current = undefined;
        this.account.sent++;
        this.sent(frame);
        this.follow(channel, this.history.next, tailRepeats);
      }
    }
  }

  private send(channel: Channel, sent: Sent): void {
    channel.send(sent.message);
    this.handed += sent.message.length;
    this.account.bytes += sent.message.length;
    sent.end = this.handed;
  }

  /**
   * Repeats requested chunks, except those that have not left yet, and those for which the channel
   * has no room: the server requests them again.
   */
  private repeat(channel: Channel, request: ArrayBuffer): void {
    if (channel !== this.channel || channel.readyState !== "open") {
      return;
    }
    this.look(channel);
    this.requested = this.now();
    const { room } = this;
    for (const sent of this.history.requested(request)) {
      if (sent.end <= this.handed - channel.bufferedAmount && channel.bufferedAmount <= room) {
        this.send(channel, sent);
      }
    }
    this.look(channel);
  }

  /** Repeats the last chunk while it remains the last one. */
  private follow(channel: Channel, next: number, repeats: number): void {
    if (repeats === 0 || this.now() - this.requested > lossy) {
      return;
    }
    setTimeout(() => {
      const last = this.history.last;
      if (this.history.next === next && channel === this.channel && channel.readyState === "open" && channel.bufferedAmount === 0 && last) {
        this.send(channel, last);
        this.follow(channel, next, repeats - 1);
      }
    }, tailInterval);
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
