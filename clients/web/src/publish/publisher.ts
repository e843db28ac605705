// One publication of this page: the workers that make its frames, its data channel to the server,
// and the handling of requests from the server and limits of the uplink.

import type { ClientMessage, Publication, ServerMessage } from "../signal/messages";
import type { GivenUp, Outgoing } from "../viewer/own";
import { Adaptation, hopeless, stepInterval } from "./adaptation";
import { Announcement } from "./announcement";
import type { PlainFrame } from "../sframe/traffic";
import { scheme } from "../sframe/metadata";
import { fourCC, type OutgoingFrame, rasterFourCC, timestampOf, withPrefix } from "./chunks";
import type { Picture } from "./depth";
import { Figures, type State } from "./figures";
import { refusal } from "./refusal";
import { bitrateOf, type RasterTile } from "./rgbd/cutter";
import { type Quality, Tiling } from "./tiling";
import type { Codec, EncoderOrder, EncoderReport, Plan, StudioOrder, StudioReport } from "./traffic";
import { type Channel, Uplink } from "./uplink";

/** The parts of the session that a publisher uses. */
export interface Link {
  send(message: ClientMessage): boolean;
  /** Tells the server which tracks of a publication the uplink cannot carry. */
  giveUp(publication: string, givenUp: GivenUp): void;
  /** Informs the server that a publication has ended. */
  retract(publication: string): void;
  /** Opens a data channel on the present connection. */
  channel(label: string): (Channel & { close(): void }) | undefined;
  /** The offset of the server's clock from this host's, in milliseconds. */
  ahead(): number;
  /** Encrypts frames, in their order; undefined if the page has no key. */
  seal?: ((frame: PlainFrame) => Promise<Uint8Array<ArrayBuffer> | undefined>) | undefined;
}

/** The used parts of one publisher's workers. */
export interface Crew {
  studio: Worker;
  encoders: Worker[];
}

export interface PublisherEvents {
  /** The server has rejected the publication, with the reason. */
  refused(message: string): void;
  /** The server has accepted the publication. */
  accepted?(): void;
  trouble(message: string): void;
  /** Returns the next picture for the studio; undefined if there is no new one. */
  picture(): Promise<Picture | undefined>;
}

/** A data channel to a server with its queue. */
interface Way {
  uplink: Uplink;
  channel: (Channel & { close(): void }) | undefined;
}

const checkInterval = 100;
/** A publication without a frame for this time in milliseconds delays no move to another server. */
const restingAfter = 1000;
/**
 * The approximate number of bits that Draco needs per point of a person, for estimates before the
 * first frame.
 */
const bitsPerPoint = 26;

/**
 * Starts the workers: one for points, and encoders such that two cores remain for page and browser.
 */
export function startCrew(tiles: number, codec: Codec = "draco"): Crew {
  const count = Math.max(1, Math.min(tiles, 4, (navigator.hardwareConcurrency || 2) - 2));
  const encoder = (): Worker => {
    if (codec === "rgbd") {
      return new Worker(new URL("./rgbd/worker.ts", import.meta.url), { type: "module" });
    }
    return new Worker(new URL("./encoder.ts", import.meta.url), { type: "module" });
  };
  return {
    studio: new Worker(new URL("./studio.ts", import.meta.url), { type: "module" }),
    encoders: Array.from({ length: count }, encoder),
  };
}

/**
 * Converts a plan to the server's description.
 * @param rasters are the tiles of codec "rgbd"
 */
export function describe(name: string, plan: Plan, encrypted = false, rasters?: readonly RasterTile[]): Publication {
  const tiling = new Tiling(plan.tiles, plan.box);
  const tiles = rasters?.map(({ label, box }) => ({ label, box })) ?? Array.from({ length: plan.tiles }, (_, tile) => tiling.tile(tile));
  const bitrate = (quality: Quality): number => {
    const whole = rasters
      ? rasters.reduce((sum, tile) => sum + bitrateOf(quality, tile, plan.fps), 0)
      : quality.share * plan.points * bitsPerPoint * plan.fps;
    return Math.round(whole / plan.tiles);
  };
  return {
    name,
    kind: "video",
    mode: "alternatives",
    codec: { mime_type: "video/volumetric", clock_rate: 90_000, fmtp: rasters ? `codec=${rasterFourCC}` : "draco=1" },
    frame_rate: plan.fps,
    ...(encrypted ? { encryption: scheme } : {}),
    tiles,
    qualities: plan.qualities.map((q) => ({ name: q.name, bitrate_bps: bitrate(q) })),
  };
}

export class Publisher implements Outgoing {
  private way: Way;
  /** The way to the server that the session moves to, until the first frame on it. */
  private next: Way | undefined;
  /** The way to the server that the session moves from, and the number of the last frame on it. */
  private former: (Way & { last: number }) | undefined;
  /** The requests of the server that the session moves to; undefined before its first message. */
  private nextWanted: number[][] | undefined;
  /** The newest frame number, and the time of the last frame. */
  private newest: number | undefined;
  private offered = -Infinity;
  private readonly adaptation: Adaptation;
  private readonly figures: Figures;
  /** The qualities of each tile with a receiver; all until the server's first message. */
  private wanted: number[][];
  private readonly announcement: Announcement;
  private adapted = 0;
  private ended = false;
  /** The tiles of codec "rgbd", once they are known. */
  private rasters: RasterTile[] | undefined;
  /** The session was entered before the tiles were known. */
  private waiting = false;
  /** Timestamps start at a random value (RFC 3550 section 5.1). */
  private readonly beginning = Math.floor(Math.random() * 2 ** 32);
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(
    private readonly link: Link,
    readonly name: string,
    readonly plan: Plan,
    private readonly crew: Crew,
    mirror: OffscreenCanvas | undefined,
    private readonly events: PublisherEvents,
  ) {
    const all = plan.qualities.map((_, q) => q);
    this.wanted = Array.from({ length: plan.tiles }, () => all);
    this.announcement = new Announcement(name, (message) => link.send(message), () => describe(name, plan, link.seal !== undefined, this.rasters));
    this.adaptation = new Adaptation(plan.qualities.length);
    this.figures = new Figures(plan);
    this.way = this.newWay();
    this.start(mirror);
    this.timer = setInterval(() => this.check(now()), checkInterval);
  }

  private newWay(): Way {
    return { uplink: new Uplink(this.plan.tiles, (frame) => this.figures.sent(frame, now()), now), channel: undefined };
  }

  private start(mirror: OffscreenCanvas | undefined): void {
    const { studio, encoders } = this.crew;
    const ports = encoders.map((encoder) => {
      const { port1, port2 } = new MessageChannel();
      const order: EncoderOrder = { jobs: port1 };
      encoder.postMessage(order, [port1]);
      encoder.onmessage = ({ data }: MessageEvent<EncoderReport>) => this.encoded(data);
      return port2;
    });
    studio.onmessage = ({ data }: MessageEvent<StudioReport>) => this.reported(data);
    for (const worker of [studio, ...encoders]) {
      worker.onerror = (event) => this.events.trouble(event.message || "The encoder of points cannot be loaded. Reload the page.");
    }
    this.order({ type: "begin", plan: this.plan, encoders: ports, mirror }, mirror ? [...ports, mirror] : ports);
  }

  private order(order: StudioOrder, transfer: Transferable[] = []): void {
    this.crew.studio.postMessage(order, transfer);
  }

  /**
   * The session was entered: with a new connection or the previous one; with the previous
   * publications or without.
   */
  entered(renewed: boolean, resumed: boolean): void {
    if (renewed) {
      this.left();
      this.way.channel = undefined;
    }
    this.announce(resumed);
  }

  /** The session is on another server, with the previous publications or without. */
  moved(resumed: boolean): void {
    this.left();
    this.nextWanted = undefined;
    this.next = this.newWay();
    this.announce(resumed);
  }

  /** Reports whether frames still leave over the connection to the former server. */
  moves(at: number): boolean {
    const { next, former } = this;
    return (next !== undefined && at - this.offered < restingAfter) || (former?.channel?.readyState === "open" && !former.uplink.empty);
  }

  /** The connection to the former server ends. */
  left(): void {
    if (this.next) {
      this.advance(this.next);
    }
    this.former = undefined;
  }

  /** Continues on the next way. */
  private advance(next: Way): void {
    this.former = { ...this.way, last: this.newest ?? 0 };
    this.way = next;
    this.next = undefined;
    this.wanted = this.nextWanted ?? this.wanted;
    this.tell();
  }

  private announce(resumed: boolean): void {
    this.waiting = this.plan.codec === "rgbd" && !this.rasters;
    if (!this.waiting && this.announcement.entered(resumed)) {
      this.connect();
    }
  }

  private connect(): void {
    const way = this.next ?? this.way;
    way.channel ??= this.link.channel(this.name);
    if (way.channel) {
      const channel = way.channel as Channel & { onopen?: ((event: Event) => unknown) | null };
      channel.onopen = () => way.uplink.pump();
      way.uplink.connect(channel);
    }
  }

  /** Handles a message of the server, or of the former one, and reports whether it was for this publication. */
  handle(message: ServerMessage, former = false): boolean {
    if (message.type === "wanted") {
      for (const { publication, tiles } of message.publications) {
        if (publication === this.name) {
          this.want(this.wanted.map((_, tile) => tiles[tile] ?? []), former);
        }
      }
      return false;
    }
    const answer = this.announcement.answer(message);
    if (answer === "accepted") {
      this.connect();
      this.tell();
      this.events.accepted?.();
    } else if (answer) {
      this.events.refused(refusal(answer));
    }
    return answer !== undefined;
  }

  /** Sets the requests of a server, which apply while frames leave over the connection to that server. */
  private want(wanted: number[][], former: boolean): void {
    if (!former && this.next) {
      this.nextWanted = wanted;
    } else if (former === (this.next !== undefined)) {
      this.wanted = wanted;
      this.tell();
    }
  }

  /**
   * Returns the qualities of a tile to encode: those with a receiver that the uplink can carry,
   * lowest first.
   */
  private taken(tile: number): number[] {
    return this.announcement.announced ? (this.wanted[tile] ?? []).filter((q) => q < this.adaptation.current.qualities) : [];
  }

  /**
   * Sends changes of the encoded qualities to the studio, and of the dropped ones to the server.
   */
  private tell(): void {
    const tiles = this.wanted.map((_, tile) => this.taken(tile));
    this.order({ type: "wanted", tiles, share: this.adaptation.current.share });
    this.way.uplink.keepOnly((tile, quality) => tiles[tile]?.includes(quality) ?? false);
    const { qualities } = this.adaptation.current;
    const given = this.plan.qualities.map((_, q) => q).filter((q) => q >= qualities);
    this.link.giveUp(this.name, {
      estimate: this.adaptation.estimate, tracks: this.wanted.flatMap((_, tile) => given.map((quality) => ({ tile, quality }))),
    });
  }

  private reported(report: StudioReport): void {
    switch (report.type) {
      case "ready":
        this.figures.ready = true;
        this.tell();
        break;
      case "tiles":
        this.rasters = report.tiles;
        if (this.waiting) {
          this.entered(false, false);
        }
        break;
      case "captured":
        this.figures.captured(now());
        break;
      case "skipped":
        this.figures.skipped(now());
        break;
      case "need":
        void this.events.picture().then((picture) => this.handOver(picture), (error: unknown) => this.events.trouble(String(error)));
        break;
      case "failure":
        this.events.trouble(report.message);
        break;
    }
  }

  /** Passes a picture to the studio, which receives its memory. */
  handOver(picture: Picture | undefined): void {
    if (!this.ended) {
      this.order({ type: "picture", picture }, picture ? transferOf(picture) : []);
    }
  }

  private encoded(report: EncoderReport): void {
    if (report.type === "failure") {
      this.events.trouble(report.message);
      return;
    }
    const { tile, quality, number, captured } = report;
    this.figures.encoded(report, now());
    // The frame may have been encoded for a participant who has left since.
    if (this.taken(tile).includes(quality)) {
      const data = withPrefix(this.plan.codec === "rgbd" ? rasterFourCC : fourCC, captured + this.link.ahead(), report.data);
      this.offer({ tile, quality, number, timestamp: timestampOf(captured, this.beginning), data });
    }
  }

  private offer(frame: OutgoingFrame): void {
    const { seal } = this.link;
    if (!seal) {
      this.uplinkOf(frame.number).offer(frame);
      return;
    }
    const { tile, quality, number, data } = frame;
    void seal({ publication: this.name, tile, quality, number, data }).then((sealed) => {
      if (sealed && !this.ended) {
        this.uplinkOf(number).offer({ ...frame, data: sealed });
      }
    });
  }

  /**
   * Returns the queue for a frame. The first frame above all before takes the next way, if that is open;
   * other tiles and qualities of former frames follow them.
   */
  private uplinkOf(number: number): Uplink {
    const newer = this.newest === undefined || ((number - this.newest) | 0) > 0;
    this.offered = now();
    if (this.former && ((number - this.former.last) | 0) <= 0) {
      return this.former.uplink;
    }
    if (newer && this.next?.channel?.readyState === "open") {
      this.advance(this.next);
    }
    if (newer) {
      this.newest = number;
    }
    return this.way.uplink;
  }

  private check(at: number): void {
    const { uplink, channel } = this.way;
    uplink.pump();
    this.former?.uplink.pump();
    if (at - this.adapted < stepInterval) {
      return;
    }
    this.adapted = at;
    const { sent, dropped } = uplink.take();
    this.figures.dropped(dropped, at);
    if (channel?.readyState !== "open") {
      return;
    }
    const before = this.adaptation.current;
    const { rate: carried, queued, stalled } = uplink;
    if (stalled >= hopeless) {
      uplink.abandon();
    }
    const after = this.adaptation.step(at, { rates: this.figures.encodedRates(at), sent, dropped, carried, queued, stalled });
    if (after !== before) {
      this.tell();
    }
  }

  /** Returns the state for display. */
  state(): State {
    const { current, estimate } = this.adaptation;
    const tiles = this.wanted.map((_, tile) => this.taken(tile));
    return this.figures.state(now(), {
      live: this.announcement.announced && this.way.channel?.readyState === "open", wanted: this.wanted, taken: tiles, decision: current, carried: this.way.uplink.rate || estimate,
    });
  }

  /** Ends the publication. */
  end(): void {
    this.ended = true;
    clearInterval(this.timer);
    if (this.announcement.known) {
      this.link.retract(this.name);
    }
    [this.way, this.next, this.former].forEach((way) => way?.channel?.close());
    for (const worker of [this.crew.studio, ...this.crew.encoders]) {
      worker.terminate();
    }
  }
}

/** Returns the memory of a picture. */
function transferOf(picture: Picture): Transferable[] {
  switch (picture.kind) {
    case "image":
      return [picture.image];
    case "map":
      return [picture.map.depth.buffer, picture.map.colors.buffer];
    case "points":
      return [picture.points.positions.buffer, picture.points.colors.buffer];
  }
}

function now(): number {
  return performance.timeOrigin + performance.now();
}
