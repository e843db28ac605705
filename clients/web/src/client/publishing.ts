// The publications of an application: points of a figure, of a depth camera or of its own; sound;
// webcams and screens. This module is loaded with the first publication.

import type { Points } from "../decode/points";
import { boxOfPicture, type Lens, type Picture, usualLens } from "../publish/depth";
import { figureBox, seedOf } from "../publish/figure/figure";
import { linkOf } from "../publish/link";
import { Publisher, startCrew } from "../publish/publisher";
import { type Quality, standardQualities, tileCounts } from "../publish/tiling";
import type { Plan, SourceChoice } from "../publish/traffic";
import type { State } from "../publish/figures";
import { hasCodec, VideoPublication } from "../publish/video/publication";
import type { VideoCodec, VideoKind } from "../publish/video/plan";
import { Voice } from "../publish/voice";
import { transforms } from "../media/connection";
import type { Box } from "../signal/messages";
import type { Conference } from "../viewer/conference";
import { soundAdvice } from "../viewer/secrecy";
import { loadWorkers } from "./workers";

/** The settings of a publication of points. */
export interface PointOptions {
  /** The name of the publication, "body" by default. */
  name?: string;
  /** The most points of a frame, 20,000 by default. */
  points?: number;
  /** Frames per second, 15 by default. */
  fps?: number;
  /** 1, 2, 4 or 9, as volpeer cuts an object; 1 by default. */
  tiles?: number;
  /** The qualities, the lowest first; by default a quarter, a half and all of the points. */
  qualities?: readonly Quality[];
}

/** The settings of a publication with points of the application. */
export interface CustomOptions extends PointOptions {
  /** The box of all points in metres, y up. Points outside are moved to its sides. */
  box: Box;
}

/** The settings of a publication of a depth camera. */
export interface DepthOptions extends PointOptions {
  /** Depth images ("rgbd", the default), at a quarter of the bitrate of points; or points with Draco. */
  codec?: "draco" | "rgbd";
  /** The form of the picture, and the view of the camera; missing parts have usual values. */
  lens?: Partial<Lens>;
}

/** A depth camera. The entry point "@volsfu/client/devices" opens those of the browser. */
export interface DepthSource {
  /** Returns the next picture; undefined if there is none at present. */
  picture(): Promise<Picture | undefined>;
  /** Width over height of the whole picture; 8:3 if it is unknown, two pictures of 4:3 side by side. */
  readonly aspect?: number;
}

export interface SoundOptions {
  /** The name of the publication, "voice" by default. */
  name?: string;
  /** The rate in bit/s, 64,000 by default. */
  bitrate?: number;
}

export interface PictureOptions {
  /** A webcam or a screen; a webcam by default. A room has at most one of each from one participant. */
  kind?: VideoKind;
  codec?: VideoCodec;
}

/** A publication of this participant. */
export interface OwnPublication {
  readonly name: string;
  /**
   * Resolves when the publication has ended: with the reason if the server rejected it or the device
   * of a track was disconnected, with an empty text if end was called or the room was left.
   */
  readonly ended: Promise<string>;
  end(): void;
}

/** A publication of points. */
export interface PointPublication extends OwnPublication {
  /** Resolves when the server has accepted the publication; rejects with its reason if not. */
  readonly accepted: Promise<void>;
  /** Returns the present state of encoding and sending. */
  state(): State;
}

/** A publication with points of the application. */
export interface CustomPublication extends PointPublication {
  /**
   * Publishes points as the next frame, whose memory is handed over. Of several frames within a
   * frame interval only the last is sent. Throws a RangeError if the arrays are shorter than three
   * values for each point.
   */
  write(points: Points): void;
}

/** A publication of sound. */
export interface SoundPublication extends OwnPublication {
  muted: boolean;
}

/** The most bits of a coordinate in Draco. */
const mostBits = 30;

const usual = { name: "body", points: 20_000, fps: 15, tiles: 1 };
const usualSound = { name: "voice", bitrate: 64_000 };

function planOf(options: PointOptions, source: SourceChoice, box: Box): Plan {
  const { points = usual.points, fps = usual.fps, tiles = usual.tiles, qualities = standardQualities } = options;
  if (!tileCounts.some((c) => c === tiles)) {
    throw new RangeError(`${tiles} tiles, expected one of ${tileCounts.join(", ")}`);
  }
  if (!(points >= 1) || !(fps > 0) || qualities.length === 0) {
    throw new RangeError(`${points} points, ${fps} frames per second and ${qualities.length} qualities, expected at least one of each`);
  }
  checkBox(box);
  qualities.forEach((quality, i) => checkQuality(quality, qualities[i - 1]?.share ?? 0));
  return { source, box, tiles, qualities, points: Math.round(points), fps };
}

function checkBox(box: Box): void {
  const { min, max } = box ?? {};
  const valid = [0, 1, 2].every((i) => Number.isFinite(min?.[i]) && Number.isFinite(max?.[i]) && max[i]! >= min[i]!);
  if (!valid || [0, 1, 2].every((i) => max[i] === min[i])) {
    throw new RangeError(`the box ${JSON.stringify(box)}, expected three numbers in metres for min, and three for max that are greater`);
  }
}

/** @param before is the share of the quality before, 0 for the lowest */
function checkQuality({ name, share, bits }: Quality, before: number): void {
  if (!(share > 0 && share >= before && share <= 1)) {
    throw new RangeError(`the quality ${JSON.stringify(name)} has the share ${share}, expected more than 0, at most 1, and at least the ${before} of the quality before`);
  }
  if (!Number.isInteger(bits) || bits < 1 || bits > mostBits) {
    throw new RangeError(`the quality ${JSON.stringify(name)} has ${bits} bits, expected 1 to ${mostBits}`);
  }
}

/** A promise with the functions that settle it. */
interface Deferred<T> {
  promise: Promise<T>;
  resolve(value: T): void;
  reject(reason: Error): void;
}

function defer<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (reason: Error) => void;
  const promise = new Promise<T>((good, bad) => ([resolve, reject] = [good, bad]));
  // An application may wait for the end alone.
  promise.catch(() => {});
  return { promise, resolve, reject };
}

/** Publishes points that the workers get from a source. */
class PointOutgoing implements CustomPublication {
  private readonly publisher: Publisher;
  private readonly acceptance = defer<void>();
  private readonly ending = defer<string>();
  private over = false;

  constructor(
    private readonly conference: Conference,
    readonly name: string,
    plan: Plan,
    source: DepthSource | undefined,
    trouble: (message: string) => void,
  ) {
    this.publisher = new Publisher(linkOf(conference), name, plan, startCrew(plan.tiles, plan.codec), undefined, {
      refused: (message) => this.finish(message),
      trouble,
      accepted: () => this.acceptance.resolve(),
      picture: () => source?.picture() ?? Promise.resolve(undefined),
    });
    conference.publish(this.publisher);
  }

  get accepted(): Promise<void> {
    return this.acceptance.promise;
  }

  get ended(): Promise<string> {
    return this.ending.promise;
  }

  state(): State {
    return this.publisher.state();
  }

  write(points: Points): void {
    const { count, positions, colors } = points;
    const room = Math.floor(Math.min(positions.length, colors.length) / 3);
    if (!(count >= 0 && count <= room)) {
      throw new RangeError(`${count} points in arrays for ${room}, expected arrays with three values for each point`);
    }
    this.publisher.handOver({ kind: "points", points });
  }

  end(): void {
    this.finish("");
  }

  private finish(why: string): void {
    if (this.over) {
      return;
    }
    this.over = true;
    this.conference.unpublish(this.publisher);
    this.publisher.end();
    this.acceptance.reject(new Error(why || "the publication ended"));
    this.ending.resolve(why);
  }
}

/** A publication of media of the browser. */
class MediaOutgoing implements OwnPublication {
  private readonly ending = defer<string>();
  private over = false;
  private readonly outgoing: { end(): void };

  /** @param start starts the publication, which calls lost with the reason when it has ended */
  constructor(readonly name: string, start: (lost: (why: string) => void) => { end(): void }) {
    this.outgoing = start((why) => this.finish(why));
  }

  get ended(): Promise<string> {
    return this.ending.promise;
  }

  end(): void {
    this.finish("");
  }

  private finish(why: string): void {
    if (!this.over) {
      this.over = true;
      this.outgoing.end();
      this.ending.resolve(why);
    }
  }
}

class SoundOutgoing extends MediaOutgoing implements SoundPublication {
  private readonly voice: Voice;

  constructor(conference: Conference, track: MediaStreamTrack, { name = usualSound.name, bitrate = usualSound.bitrate }: SoundOptions) {
    let voice!: Voice;
    super(name, (lost) => (voice = new Voice(conference, track, lost, { name, bps: bitrate, what: `the sound ${name}`, ended: `The sound ${name} has ended: its device was disconnected.` })));
    this.voice = voice;
  }

  get muted(): boolean {
    return !this.voice.on;
  }

  set muted(muted: boolean) {
    this.voice.on = !muted;
  }
}

/** Throws an error if a track cannot be published as that kind of media. */
function checkTrack(track: MediaStreamTrack, kind: "audio" | "video"): void {
  if (track.kind !== kind) {
    const what = typeof track.kind === "string" ? `a track of ${track.kind}` : Object.prototype.toString.call(track);
    throw new TypeError(`${what}, expected a track of ${kind}: of a MediaStream, pass get${kind === "audio" ? "Audio" : "Video"}Tracks()[0]`);
  }
  if (track.readyState === "ended") {
    throw new Error(`The track of ${kind} has ended. Open the device again.`);
  }
}

/** Publishes for one room. */
export class Publishing {
  private readonly current = new Set<OwnPublication>();
  private left = false;

  constructor(
    private readonly conference: Conference,
    private readonly assets: string | undefined,
    private readonly trouble: (message: string) => void,
  ) {}

  async figure(options: PointOptions): Promise<PointPublication> {
    const { identity } = this.conference;
    return this.points(options, planOf(options, { kind: "figure", seed: seedOf(identity) }, figureBox));
  }

  async depth(source: DepthSource, options: DepthOptions): Promise<PointPublication> {
    const lens = { ...usualLens, ...options.lens };
    const box = boxOfPicture(lens, source.aspect ?? 8 / 3);
    return this.points(options, { ...planOf(options, { kind: "depth", lens }, box), codec: options.codec ?? "rgbd" }, source);
  }

  async custom(options: CustomOptions): Promise<CustomPublication> {
    return this.points(options, planOf(options, { kind: "points" }, options.box));
  }

  private async points({ name = usual.name }: PointOptions, plan: Plan, source?: DepthSource): Promise<CustomPublication> {
    await loadWorkers("publish", this.assets);
    this.check(name);
    return this.add(new PointOutgoing(this.conference, name, plan, source, this.trouble));
  }

  sound(track: MediaStreamTrack, options: SoundOptions): SoundPublication {
    this.check(options.name ?? usualSound.name);
    checkTrack(track, "audio");
    if (this.conference.encryption && !transforms()) {
      throw new Error(`This browser cannot encrypt sound. ${soundAdvice} Use another browser, or join without a key.`);
    }
    return this.add(new SoundOutgoing(this.conference, track, options));
  }

  picture(track: MediaStreamTrack, { kind = "webcam", codec }: PictureOptions): OwnPublication {
    this.check(kind);
    checkTrack(track, "video");
    if (this.conference.encryption) {
      throw new Error("This session has a key, and webcams and screens cannot be encrypted. To publish them, join without a key.");
    }
    const { width = 1280, height = 720, frameRate = 30 } = track.getSettings();
    const opened = { track, sound: undefined, capture: { width, height, fps: Math.round(frameRate) } };
    const chosen = codec ?? (hasCodec("VP8") ? "VP8" : "H264");
    return this.add(new MediaOutgoing(kind, (lost) => new VideoPublication(this.conference, kind, chosen, opened, lost, this.trouble)));
  }

  /** Ends all publications, since the room was left. Later calls of the other methods throw. */
  close(): void {
    this.left = true;
    [...this.current].forEach((publication) => publication.end());
  }

  /** Throws an error if a publication of that name cannot begin. */
  private check(name: string): void {
    if (this.left) {
      throw new Error("The room was left.");
    }
    if ([...this.current].some((publication) => publication.name === name)) {
      throw new Error(`This participant publishes ${JSON.stringify(name)} already. End that publication before, or choose another name.`);
    }
  }

  /** Keeps a publication until it ends. */
  private add<T extends OwnPublication>(publication: T): T {
    this.current.add(publication);
    void publication.ended.then(() => this.current.delete(publication));
    return publication;
  }
}
