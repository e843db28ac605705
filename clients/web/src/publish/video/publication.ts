// A webcam or a screen as a publication: a track of the connection for each quality, encoded by the
// browser. Qualities that no receiver takes rest.

import type { SenderStatistics } from "../../media/connection";
import type { Source } from "../../media/source";
import type { ServerMessage } from "../../signal/messages";
import type { Conference } from "../../viewer/conference";
import type { Outgoing } from "../../viewer/own";
import { Announcement } from "../announcement";
import { refusal } from "../refusal";
import { SenderBudget } from "./budget";
import type { Opened } from "./capture";
import { describeVideo, type Encoding, encodingsOf, parametersOf, type VideoCodec, type VideoKind } from "./plan";
import { EncodingSender } from "./sender";

const stepInterval = 1000;

/** The state of one quality. */
export interface EncodingState {
  encoding: Encoding;
  /** A receiver takes the quality, or may take it soon. */
  wanted: boolean;
  /** The encoded picture and rate of the last second; zero while the quality rests. */
  width: number;
  height: number;
  fps: number;
  bps: number;
}

export class VideoPublication implements Outgoing, Source {
  readonly encodings: readonly Encoding[];
  readonly budget: SenderBudget;
  private readonly announcement: Announcement;
  private readonly senders = new Map<number, EncodingSender>();
  /** The browser's estimate of the uplink in bit/s, 0 if unknown. */
  private available = 0;
  /** The qualities with a receiver; all until the server's first message. */
  private wanted: readonly number[];
  private states: EncodingState[];
  private readonly readings = new Map<string, { at: number; bytes: number }>();
  private readonly timer: ReturnType<typeof setInterval>;

  /**
   * @param lost is called with the reason, empty if the user stopped it, when the picture is no
   * longer sent; the caller must then end the publication
   * @param trouble is called with other problems
   */
  constructor(
    private readonly conference: Conference,
    readonly kind: VideoKind,
    readonly codec: VideoCodec,
    private readonly opened: Opened,
    private readonly lost: (why: string) => void,
    private readonly trouble: (message: string) => void,
  ) {
    this.encodings = encodingsOf(kind, opened.capture);
    this.budget = new SenderBudget(this.encodings.length);
    this.wanted = this.encodings.map((_, q) => q);
    this.states = this.encodings.map((encoding) => ({ encoding, wanted: true, width: 0, height: 0, fps: 0, bps: 0 }));
    this.announcement = new Announcement(kind, (message) => conference.session.send(message), () => describeVideo(kind, codec, opened.capture, this.encodings));
    opened.track.onended = () => lost(kind === "screen" ? "" : "The webcam was disconnected. Connect it, then press Webcam again.");
    conference.feed(kind, this);
    conference.publish(this);
    this.timer = setInterval(() => void this.step(performance.now()), stepInterval);
  }

  /** The server has the publication, and the connection has a line for each quality. */
  get live(): boolean {
    return this.announcement.announced && this.senders.size === this.encodings.length;
  }

  entered(renewed: boolean, resumed: boolean): void {
    if (renewed) {
      this.senders.clear();
      this.readings.clear();
    }
    if (!this.announcement.entered(resumed)) {
      this.wanted = this.encodings.map((_, q) => q);
    }
  }

  handle(message: ServerMessage, former = false): boolean {
    if (message.type === "wanted") {
      // The senders are those of the present connection.
      const own = former ? undefined : message.publications.find((p) => p.publication === this.kind);
      if (own) {
        this.wanted = own.tiles[0] ?? [];
        this.apply();
      }
      return false;
    }
    const answer = this.announcement.answer(message);
    if (answer === "accepted") {
      this.apply();
    } else if (answer) {
      this.lost(refusal(answer));
    }
    return answer !== undefined;
  }

  track(): MediaStreamTrack {
    return this.opened.track;
  }

  prepare(transceiver: RTCRtpTransceiver): void {
    const preferred = codecsOf(this.codec);
    if (preferred.length > 0) {
      transceiver.setCodecPreferences(preferred);
    }
  }

  answered(quality: number, sender: RTCRtpSender, mid: string): void {
    if (this.senders.get(quality)?.mid !== mid) {
      this.senders.set(quality, new EncodingSender(sender, mid, this.kind, this.codec, this.trouble));
    }
    this.apply();
  }

  /** Returns the qualities that are sent: those with a receiver that uplink and processor can carry. */
  private get taken(): number[] {
    return this.wanted.filter((q) => q < this.budget.qualities);
  }

  /** Sets the parameters of all senders, and reports the qualities that are given up to the server. */
  private apply(): void {
    const { taken } = this;
    for (const [quality, sender] of this.senders) {
      const encoding = this.encodings[quality];
      if (encoding) {
        sender.set(parametersOf(encoding, taken.includes(quality)));
      }
    }
    if (this.announcement.announced) {
      const tracks = this.encodings.map((_, quality) => ({ tile: 0, quality })).filter(({ quality }) => quality >= this.budget.qualities);
      this.conference.giveUp(this.kind, { estimate: this.available, tracks });
    }
  }

  private async step(now: number): Promise<void> {
    const uplink = await this.conference.uplink();
    if (!uplink) {
      return;
    }
    this.available = uplink.available ?? 0;
    const { taken } = this;
    let limit = "none";
    this.states = this.encodings.map((encoding, quality) => {
      const held = this.senders.get(quality);
      const statistics = held && uplink.senders.get(held.mid);
      const wanted = this.wanted.includes(quality);
      if (!held || !statistics || !taken.includes(quality)) {
        return { encoding, wanted, width: 0, height: 0, fps: 0, bps: 0 };
      }
      limit = statistics.limit;
      return { encoding, wanted, width: statistics.width, height: statistics.height, fps: statistics.fps, bps: this.rate(held.mid, statistics, now) };
    });
    const needed = taken.reduce((sum, q) => sum + this.encodings[q]!.bps, 0);
    if (this.budget.step(now, { available: uplink.available, needed, sent: taken.length, limit })) {
      this.apply();
    }
  }

  private rate(mid: string, { bytes }: SenderStatistics, now: number): number {
    const before = this.readings.get(mid);
    this.readings.set(mid, { at: now, bytes });
    return before && now > before.at ? (8000 * Math.max(0, bytes - before.bytes)) / (now - before.at) : 0;
  }

  /** Returns the state of each quality, the lowest first. */
  state(): readonly EncodingState[] {
    return this.states;
  }

  end(): void {
    clearInterval(this.timer);
    this.opened.track.onended = null;
    this.opened.track.stop();
    this.conference.unpublish(this);
    if (this.announcement.known) {
      this.conference.retract(this.kind);
    }
    this.conference.feed(this.kind, undefined);
  }
}

/** Reports whether the browser encodes a codec. */
export function hasCodec(codec: VideoCodec): boolean {
  return RTCRtpSender.getCapabilities("video")?.codecs.some((c) => c.mimeType.toLowerCase() === `video/${codec.toLowerCase()}`) ?? false;
}

/** Returns the browser's forms of a codec and its retransmissions; none if it has no such codec. */
function codecsOf(codec: VideoCodec): RTCRtpCodec[] {
  const all = RTCRtpReceiver.getCapabilities("video")?.codecs ?? [];
  const chosen = all.filter((c) => c.mimeType.toLowerCase() === `video/${codec.toLowerCase()}`);
  return chosen.length > 0 ? [...chosen, ...all.filter((c) => c.mimeType.toLowerCase() === "video/rtx")] : [];
}
