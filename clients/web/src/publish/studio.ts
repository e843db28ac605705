/// <reference lib="webworker" />
// The worker that makes captures: it controls the timing, generates points or computes them from
// pictures, cuts them into tiles, and passes each tile to its encoder. Tiles without a receiver are
// not passed on. Timers of workers also run while a page is in the background.

import { PointPool, type Points } from "../decode/points";
import { type DepthMap, mapOf, type Picture, Unprojector } from "./depth";
import { Figure } from "./figure/figure";
import { Mirror } from "./mirror";
import { RasterCutter } from "./rgbd/cutter";
import type { RasterDone } from "./rgbd/traffic";
import { cut, Tiling } from "./tiling";
import type { Plan, StudioOrder, StudioReport, TileDone, TileJob } from "./traffic";

declare const self: DedicatedWorkerGlobalScope;

/**
 * The minimum interval between pictures of the mirror in milliseconds, and their maximum number of
 * points.
 */
const mirrorInterval = 66;
const mirrorPoints = 12_000;
/** The capture interval without receivers, for the mirror only. */
const idleInterval = 200;

function report(message: StudioReport): void {
  self.postMessage(message);
}

function now(): number {
  return performance.timeOrigin + performance.now();
}

/** The content of an instant. */
interface Capture {
  points: Points;
  captured: number;
  /** The picture that the points, or a part of them, are of. */
  map?: DepthMap;
}

/** A source of points. */
interface Source {
  /** Makes the points of an instant; returns undefined if there are none yet. */
  capture(at: number): Capture | undefined;
}

class FigureSource implements Source {
  private readonly figure: Figure;

  constructor(
    points: number,
    seed: number,
    private readonly pool: PointPool,
  ) {
    this.figure = new Figure(points, seed);
  }

  capture(at: number): Capture {
    const points = this.pool.take(this.figure.points);
    // The time is limited to one day. The motion also depends on the person's seed, so that
    // different people do not move in step.
    this.figure.at((at / 1000) % 86_400, points);
    return { points, captured: at };
  }
}

/** Reads pictures requested from the page, each once. */
class DepthSource implements Source {
  private waiting: { picture: Picture; captured: number } | undefined;
  private asked = false;
  private readonly unprojector = new Unprojector();
  private canvas: OffscreenCanvas | undefined;

  constructor(
    private readonly plan: Plan,
    private readonly pool: PointPool,
  ) {}

  take(picture: Picture | undefined): void {
    this.asked = false;
    if (picture) {
      this.waiting = { picture, captured: now() };
    }
  }

  capture(): Capture | undefined {
    if (!this.asked) {
      this.asked = true;
      report({ type: "need" });
    }
    const { waiting, plan } = this;
    if (!waiting) {
      return undefined;
    }
    this.waiting = undefined;
    const map = this.mapOf(waiting.picture);
    // If the picture itself is sent, the points are for the mirror only.
    const most = plan.codec === "rgbd" ? mirrorPoints : plan.points;
    const points = this.pool.take(most);
    this.unprojector.read(map, plan.box, most, points);
    return { points, captured: waiting.captured, map };
  }

  private mapOf(picture: Picture): DepthMap {
    if (picture.kind === "map") {
      return picture.map;
    }
    const { source } = this.plan;
    if (source.kind !== "depth") {
      throw new Error("a figure received a picture");
    }
    if (picture.kind === "points") {
      throw new Error("a depth camera received points");
    }
    const { image } = picture;
    if (this.canvas?.width !== image.width || this.canvas.height !== image.height) {
      this.canvas = new OffscreenCanvas(image.width, image.height);
    }
    const context = this.canvas.getContext("2d", { willReadFrequently: true })!;
    context.drawImage(image, 0, 0);
    image.close();
    return mapOf(context.getImageData(0, 0, this.canvas.width, this.canvas.height), source.lens);
  }
}

/** Takes the points of an application, each cloud once. */
class PointSource implements Source {
  private waiting: { points: Points; captured: number } | undefined;

  constructor(
    private readonly most: number,
    private readonly pool: PointPool,
  ) {}

  take(points: Points): void {
    this.waiting = { points, captured: now() };
  }

  capture(): Capture | undefined {
    const { waiting } = this;
    if (!waiting) {
      return undefined;
    }
    this.waiting = undefined;
    const { positions, colors, count } = waiting.points;
    // The pool would grow with every cloud if it received the memory of the application.
    const points = this.pool.take(Math.min(count, this.most));
    points.positions.set(positions.subarray(0, 3 * points.count));
    points.colors.set(colors.subarray(0, 3 * points.count));
    return { points, captured: waiting.captured };
  }
}

class Studio {
  private readonly pool = new PointPool();
  private readonly tiling: Tiling;
  private readonly source: FigureSource | DepthSource | PointSource;
  /** Undefined if points are sent. */
  private readonly cutter: RasterCutter | undefined;
  private readonly mirror: Mirror;
  private wanted: number[][];
  private share = 1;
  private number = 0;
  private underWay = 0;
  /** The tiles are known. */
  private ready = false;
  private due = 0;
  private mirrored = 0;

  constructor(
    private readonly plan: Plan,
    private readonly encoders: MessagePort[],
    mirror: OffscreenCanvas | undefined,
  ) {
    this.tiling = new Tiling(plan.tiles, plan.box);
    this.wanted = Array.from({ length: plan.tiles }, () => []);
    this.mirror = new Mirror(mirror, plan.box);
    this.source = this.sourceOf(plan);
    for (const port of encoders) {
      port.onmessage = ({ data }: MessageEvent<TileDone | RasterDone>) => {
        this.underWay--;
        if ("points" in data) {
          this.pool.give(data.points);
        } else {
          this.cutter?.give(data.depths, data.colors);
        }
      };
    }
    this.cutter = plan.codec === "rgbd" ? new RasterCutter(plan) : undefined;
    this.due = now();
    if (!this.cutter) {
      this.begin();
    }
    this.tick();
  }

  private begin(): void {
    this.ready = true;
    report({ type: "ready" });
  }

  private sourceOf({ source, points }: Plan): FigureSource | DepthSource | PointSource {
    switch (source.kind) {
      case "figure":
        return new FigureSource(points, source.seed, this.pool);
      case "depth":
        return new DepthSource(this.plan, this.pool);
      case "points":
        return new PointSource(points, this.pool);
    }
  }

  take(order: StudioOrder): void {
    if (order.type === "wanted") {
      this.wanted = order.tiles;
      this.share = order.share;
    } else if (order.type === "picture") {
      const { picture } = order;
      if (this.source instanceof DepthSource && picture?.kind !== "points") {
        this.source.take(picture);
      } else if (this.source instanceof PointSource && picture?.kind === "points") {
        this.source.take(picture.points);
      }
    }
  }

  private get idle(): boolean {
    return this.wanted.every((qualities) => qualities.length === 0);
  }

  private tick(): void {
    const at = now();
    try {
      this.step(at);
    } catch (error) {
      report({ type: "failure", message: error instanceof Error ? error.message : String(error) });
    }
    // Instants keep their distance; instants missed in a stall are not repeated.
    const interval = this.idle ? idleInterval : 1000 / this.plan.fps;
    this.due += interval;
    if (this.due < at) {
      this.due = at + interval;
    }
    setTimeout(() => this.tick(), Math.max(0, this.due - now()));
  }

  private step(at: number): void {
    // One capture is being encoded, and one more may wait for that.
    if (this.underWay > this.plan.tiles) {
      report({ type: "skipped" });
      return;
    }
    const capture = this.source.capture(at);
    if (!capture) {
      return;
    }
    const { points, captured, map } = capture;
    if (at - this.mirrored >= mirrorInterval) {
      this.mirrored = at;
      this.mirror.draw(points, Math.min(points.count, mirrorPoints));
    }
    if (this.cutter && map) {
      this.encodeRaster(this.cutter, map, captured);
    } else if (!this.idle) {
      this.encode(points, captured);
      report({ type: "captured", points: points.count });
    }
    this.pool.give(points);
  }

  /** Passes the tiles of a picture to the encoders. The first picture with points determines the tiles. */
  private encodeRaster(cutter: RasterCutter, map: DepthMap, captured: number): void {
    if (this.ready && this.idle) {
      return;
    }
    const points = cutter.crop(map);
    if (!this.ready) {
      const tiles = cutter.learn(map);
      if (tiles) {
        report({ type: "tiles", tiles });
        this.begin();
      }
      return;
    }
    const number = ++this.number;
    this.wanted.forEach((qualities, tile) => {
      if (qualities.length > 0) {
        const job = cutter.job(map, tile, qualities, this.share, { number, captured });
        this.underWay++;
        this.encoders[tile % this.encoders.length]!.postMessage(job, [job.depths.buffer, job.colors.buffer]);
      }
    });
    report({ type: "captured", points });
  }

  private encode(points: Points, captured: number): void {
    const { qualities, box } = this.plan;
    const number = ++this.number;
    const parts = cut(points, this.tiling, qualities.map((q) => q.share * this.share), (room) => this.pool.take(room));
    parts.forEach((part, tile) => {
      const wanted = this.wanted[tile]!;
      if (wanted.length === 0) {
        this.pool.give(part.points);
        return;
      }
      const jobs = wanted.map((quality) => ({ quality, count: part.counts[quality]!, bits: qualities[quality]!.bits }));
      const job: TileJob = { number, captured, tile, points: part.points, qualities: jobs, box };
      this.underWay++;
      this.encoders[tile % this.encoders.length]!.postMessage(job, [part.points.positions.buffer, part.points.colors.buffer]);
    });
  }
}

let studio: Studio | undefined;

self.onmessage = ({ data: order }: MessageEvent<StudioOrder>) => {
  if (order.type === "begin") {
    studio = new Studio(order.plan, order.encoders, order.mirror);
    return;
  }
  studio?.take(order);
};
