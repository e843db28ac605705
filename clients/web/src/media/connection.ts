// The peer connection: it answers the server's offers, and passes the frames of its lines to
// workers. Only the server makes offers.

import type { Encryption } from "../sframe/encryption";
import type { ClientMessage, Media } from "../signal/messages";
import { withReferenceTimes } from "./answer";
import type { Source } from "./source";
import type { DecodedFrame, TransformOptions, WorkerOrder, WorkerReport } from "./traffic";

declare class RTCRtpScriptTransform {
  constructor(worker: Worker, options: TransformOptions);
}

/** A sender or a receiver whose frames a worker replaces. */
interface Transformed {
  transform?: object | null;
}

/** The browser's counts for a line. */
export interface LineStatistics {
  packets: number;
  lost: number;
  bytes: number;
  nacks: number;
  /** The pictures of the browser's own decoder; absent on lines with other frames. */
  pictures?: PictureStatistics;
}

/** The browser's counts for the pictures of a line. */
export interface PictureStatistics {
  decoded: number;
  fps: number;
  width: number;
  height: number;
  /** Pauses that are much longer than the usual time between two pictures, and their sum. */
  freezes: number;
  frozenSeconds: number;
  /** The mean times in milliseconds from the first packet until decoding, and of decoding. */
  wait: number;
  decode: number;
}

export interface ConnectionEvents {
  send(message: ClientMessage): void;
  audio(line: string, track: MediaStreamTrack): void;
  /** A slot exists. Its track has pictures while the slot carries H264 or VP8. */
  video(line: string, track: MediaStreamTrack): void;
  state(state: RTCPeerConnectionState): void;
  /** The copy of a data message has arrived. */
  copied(json: string): void;
}

/**
 * Reports whether this browser permits scripts to read frames of media lines. Other browsers
 * receive frames over data channels.
 */
export function transforms(): boolean {
  return "RTCRtpScriptTransform" in globalThis;
}

/** The channel with which the server measures the capacity of the link. */
const padding = "padding";
/** The label of the channels for data messages, one in each direction. */
const messageChannel = "data-messages";
/** The number of channels opened since the page was loaded, on all connections. */
let channelsOpened = 0;

/** The state of the uplink. */
export interface UplinkStatistics {
  /** The browser's estimate of the capacity in bit/s, if there is one. */
  available: number | undefined;
  /** The encoded video of each sending line, by mid. */
  senders: Map<string, SenderStatistics>;
}

export interface SenderStatistics {
  bytes: number;
  fps: number;
  width: number;
  height: number;
  /** The reason why the quality is lower than requested: "none", "cpu", "bandwidth" or "other". */
  limit: string;
}

/** The used members of the reports of received lines, of senders and of paths (W3C webrtc-stats). */
interface Inbound {
  type: string;
  mid?: string;
  packetsReceived?: number;
  packetsLost?: number;
  bytesReceived?: number;
  nackCount?: number;
  framesDecoded?: number;
  framesPerSecond?: number;
  frameWidth?: number;
  frameHeight?: number;
  freezeCount?: number;
  totalFreezesDuration?: number;
  totalDecodeTime?: number;
  totalProcessingDelay?: number;
}

interface Outbound {
  type: string;
  kind?: string;
  mid?: string;
  nominated?: boolean;
  availableOutgoingBitrate?: number;
  bytesSent?: number;
  framesPerSecond?: number;
  frameWidth?: number;
  frameHeight?: number;
  qualityLimitationReason?: string;
}

function picturesOf(s: Inbound): PictureStatistics {
  const decoded = s.framesDecoded ?? 0;
  const [whole, decode] = [s.totalProcessingDelay ?? NaN, s.totalDecodeTime ?? NaN].map((seconds) => (1000 * seconds) / decoded) as [number, number];
  return {
    decoded, fps: s.framesPerSecond ?? 0, width: s.frameWidth ?? 0, height: s.frameHeight ?? 0, freezes: s.freezeCount ?? 0, frozenSeconds: s.totalFreezesDuration ?? 0, wait: whole - decode, decode,
  };
}

/** Names the lines of a connection, by mid. Lines of two connections at the same time have different names. */
export type LineNames = (mid: string) => string;

/** Decoding workers. Each line belongs to one of them, so that its frames stay in order. */
export class Workers {
  private readonly workers: Worker[];
  private next = 0;

  /** @param rasters requests the frames of depth cameras as rasters instead of points */
  constructor(report: (report: WorkerReport) => void, rasters = false) {
    // One core is for the page itself.
    const count = Math.max(1, Math.min(4, (navigator.hardwareConcurrency || 2) - 1));
    this.workers = Array.from({ length: count }, () => {
      const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
      worker.onmessage = (event: MessageEvent<WorkerReport>) => report(event.data);
      // A page that was open during an upgrade of its server requests files that no longer exist.
      // The browser reports only that loading failed.
      worker.onerror = ({ message }) => report({ type: "failure", mid: "", message: message || "The decoder of frames cannot be loaded. Reload the page." });
      if (rasters) {
        const order: WorkerOrder = { type: "rasters" };
        worker.postMessage(order);
      }
      return worker;
    });
  }

  take(): Worker {
    return this.workers[this.next++ % this.workers.length]!;
  }

  /** Ends the workers. Their lines must have ended before. */
  close(): void {
    for (const worker of this.workers) {
      worker.terminate();
    }
  }
}

export class Connection {
  private readonly peer: RTCPeerConnection;
  /** The worker of each line with a transform, by the line's name. */
  private readonly workers = new Map<string, Worker>();
  /** The worker of each data channel, by its number. */
  private readonly channels = new Map<number, Worker>();
  private readonly playing = new Set<string>();
  /** The answered lines of this page's media. */
  private readonly sending = new Set<string>();
  /** Offers are answered one after the other, even if the previous answer failed. */
  private tail: Promise<void> = Promise.resolve();
  /** Resolved by the first offer that the browser accepts. The browser refuses candidates before. */
  private readonly described: Promise<void>;
  private describe: () => void = () => {};
  /** The channel for copies of data messages; undefined before the first offer. */
  messages: RTCDataChannel | undefined;

  /**
   * @param sources contains the media that this page publishes on lines, by the publication's name
   * @param encryption is undefined if the page has no key
   */
  constructor(
    iceServers: RTCIceServer[],
    private readonly pool: Workers,
    private readonly decode: boolean,
    private readonly sources: ReadonlyMap<string, Source>,
    private readonly events: ConnectionEvents,
    private readonly encryption?: Encryption,
    private readonly nameOf: LineNames = (mid) => mid,
  ) {
    this.described = new Promise((resolve) => (this.describe = resolve));
    this.peer = new RTCPeerConnection({ iceServers, bundlePolicy: "max-bundle" });
    this.peer.onicecandidate = ({ candidate }) => {
      events.send({
        type: "candidate",
        candidate: candidate?.candidate ?? "",
        ...(candidate?.sdpMid ? { mid: candidate.sdpMid } : {}),
        ...(candidate?.sdpMLineIndex ? { line_index: candidate.sdpMLineIndex } : {}),
      });
    };
    this.peer.ondatachannel = ({ channel }) => this.open(channel);
    this.peer.onconnectionstatechange = () => events.state(this.peer.connectionState);
  }

  get state(): RTCPeerConnectionState {
    return this.peer.connectionState;
  }

  /**
   * Answers an offer of the server. It rejects if the browser refuses the offer: this connection
   * then receives nothing new.
   */
  offered(offer: number, sdp: string, media: Media[]): Promise<void> {
    const answered = this.tail.then(() => this.answer(offer, sdp, media));
    this.tail = answered.catch(() => {});
    return answered;
  }

  private async answer(offer: number, sdp: string, media: Media[]): Promise<void> {
    await this.peer.setRemoteDescription({ type: "offer", sdp });
    this.messages ??= this.peer.createDataChannel(messageChannel, { ordered: false, maxRetransmits: 0 });
    this.describe();
    const transceivers = new Map(this.peer.getTransceivers().map((t) => [t.mid, t]));
    // Chromium checks in the task after the creation of a receiver whether the receiver has a
    // transform, and setting a sender's track needs several tasks.
    for (const line of media) {
      const transceiver = transceivers.get(line.mid);
      if (transceiver) {
        this.attach(line, transceiver);
      }
    }
    const answered: (() => void)[] = [];
    for (const { mid, publication = "", quality = 0 } of media.filter((m) => m.role === "publish")) {
      const transceiver = transceivers.get(mid);
      const source = this.sources.get(publication);
      if (transceiver) {
        transceiver.direction = source ? "sendonly" : "inactive";
        source?.prepare?.(transceiver);
        await transceiver.sender.replaceTrack(source?.track(quality) ?? null);
        if (source) {
          answered.push(() => {
            this.sending.add(`${publication}\n${quality}`);
            source.answered?.(quality, transceiver.sender, mid);
          });
        }
      }
    }
    await this.describeSelf(await this.peer.createAnswer(), sdp);
    answered.forEach((tell) => tell());
    this.events.send({ type: "answer", offer, sdp: this.peer.localDescription!.sdp });
  }

  /** Sets the answer, with reference times if the browser permits the change. */
  private async describeSelf({ type, sdp = "" }: RTCSessionDescriptionInit, offer: string): Promise<void> {
    const changed = withReferenceTimes(sdp, offer);
    try {
      await this.peer.setLocalDescription({ type, sdp: changed });
    } catch (error) {
      if (changed === sdp) {
        throw error;
      }
      await this.peer.setLocalDescription({ type, sdp });
    }
  }

  /**
   * Prepares a line. Without a timely transform, the browser's own decoder receives the frames of a
   * slot.
   */
  private attach({ mid, role, publication }: Media, transceiver: RTCRtpTransceiver): void {
    const { encryption } = this;
    const receiver = transceiver.receiver as RTCRtpReceiver & Transformed;
    const sender = transceiver.sender as RTCRtpSender & Transformed;
    if (role === "publish" && encryption && transforms()) {
      sender.transform ??= encryption.voice(publication ?? "");
    }
    const line = this.nameOf(mid);
    if (role === "slot" && !this.workers.has(line)) {
      const worker = this.pool.take();
      this.workers.set(line, worker);
      receiver.transform = encryption?.frames(line, this.decode, worker) ?? new RTCRtpScriptTransform(worker, { mid: line, decode: this.decode });
      this.events.video(line, receiver.track);
    }
    // Sound that cannot be decrypted would be noise.
    if (role === "audio" && !this.playing.has(line) && (!encryption || transforms())) {
      this.playing.add(line);
      if (encryption) {
        receiver.transform = encryption.sound(line);
      }
      this.events.audio(line, receiver.track);
    }
  }

  /**
   * Accepts a channel that the server has opened for the frames of a slot. Its label is the slot's
   * name.
   */
  private open(channel: RTCDataChannel): void {
    const { label } = channel;
    if (label === padding) {
      return;
    }
    if (label === messageChannel) {
      channel.onmessage = ({ data }: MessageEvent<unknown>) => typeof data === "string" && this.events.copied(data);
      return;
    }
    const mid = this.nameOf(label);
    const worker = this.pool.take();
    const number = channelsOpened++;
    this.workers.set(mid, worker);
    this.channels.set(number, worker);
    channel.binaryType = "arraybuffer";
    const { encryption } = this;
    if (encryption) {
      encryption.channel(number, mid, this.decode, worker);
      channel.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => encryption.chunk(number, data);
      return;
    }
    const tell = (order: WorkerOrder, transfer: Transferable[]): void => worker.postMessage(order, transfer);
    channel.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => tell({ type: "chunk", mid, decode: this.decode, channel: number, data }, [data]);
  }

  /**
   * Opens a channel for frames of a publication of this page: unordered, since frames need no order,
   * and without retransmissions, which the server requests.
   */
  publish(publication: string): RTCDataChannel {
    return this.peer.createDataChannel(publication, { ordered: false, maxRetransmits: 0 });
  }

  /**
   * Adds a candidate of the server. A candidate may precede the first offer: a page that resumes
   * receives new candidates at once, and then the offer that it has not answered.
   */
  async candidate(candidate: string, mid: string | undefined, line: number | undefined): Promise<void> {
    await this.described;
    await this.tail;
    if (candidate !== "") {
      await this.peer.addIceCandidate({ candidate, sdpMid: mid ?? null, sdpMLineIndex: line ?? null });
    }
  }

  /** Reports whether this connection has a line for all media of this page that another one sends. */
  carries(other: Connection): boolean {
    return [...other.sending].every((line) => this.sending.has(line) || !this.sources.has(line.split("\n")[0]!));
  }

  /** Records that a line carries another track, whose frames arrive from a time on, in milliseconds since 1970. */
  assigned(mid: string, since: number): void {
    const order: WorkerOrder = { type: "assigned", mid, since };
    this.workers.get(mid)?.postMessage(order);
  }

  /** Returns the memory of a displayed frame to the worker that decoded it. */
  recycle({ mid, points, raster }: DecodedFrame): void {
    const { depths, colors } = raster ?? {};
    const order: WorkerOrder = { type: "recycle", points, depths, colors };
    const memory = [points.positions, points.colors, ...(depths ? [depths] : []), ...(colors ? [colors] : [])];
    this.workers.get(mid)?.postMessage(order, memory.map(({ buffer }) => buffer));
  }

  /** Returns the browser's counts for each line, by its name. */
  async statistics(): Promise<Map<string, LineStatistics>> {
    const lines = new Map<string, LineStatistics>();
    (await this.peer.getStats()).forEach((s: Inbound) => {
      if (s.type === "inbound-rtp" && s.mid !== undefined) {
        lines.set(this.nameOf(s.mid), {
          packets: s.packetsReceived ?? 0, lost: s.packetsLost ?? 0, bytes: s.bytesReceived ?? 0, nacks: s.nackCount ?? 0, ...(s.framesDecoded ? { pictures: picturesOf(s) } : {}),
        });
      }
    });
    return lines;
  }

  /** Returns the browser's estimate of the uplink in bit/s, and the state of each sender of this page, by mid. */
  async uplink(): Promise<UplinkStatistics> {
    const statistics: UplinkStatistics = { available: undefined, senders: new Map() };
    (await this.peer.getStats()).forEach((s: Outbound) => {
      if (s.type === "candidate-pair" && s.nominated && s.availableOutgoingBitrate !== undefined) {
        statistics.available = s.availableOutgoingBitrate;
      }
      if (s.type === "outbound-rtp" && s.kind === "video" && s.mid !== undefined) {
        statistics.senders.set(s.mid, {
          bytes: s.bytesSent ?? 0, fps: s.framesPerSecond ?? 0, width: s.frameWidth ?? 0, height: s.frameHeight ?? 0, limit: s.qualityLimitationReason ?? "none",
        });
      }
    });
    return statistics;
  }

  close(): void {
    this.peer.close();
    for (const [channel, worker] of this.channels) {
      const order: WorkerOrder = { type: "closed", channel };
      worker.postMessage(order);
      this.encryption?.closed(channel);
    }
    this.channels.clear();
  }
}
