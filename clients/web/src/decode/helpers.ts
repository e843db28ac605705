// Workers of a worker: they decode parts of a frame while it decodes one itself.

import type { Helpers } from "./parts";
import type { Points } from "./points";

/** What a helper is told. */
export type HelperOrder = { type: "decode"; job: number; codec: string; data: Uint8Array } | { type: "recycle"; points: Points };

/** What a helper answers. */
export type HelperReport = { job: number; points: Points } | { job: number; message: string };

interface Waiting {
  resolve(points: Points): void;
  reject(error: Error): void;
}

/** Helpers that are started when the first part is there for them. */
export class HelperWorkers implements Helpers {
  readonly count: number;
  private readonly workers: Worker[] = [];
  private readonly waiting = new Map<number, Waiting>();
  private job = 0;

  constructor() {
    // One core is left to the page, one is this worker's own. There is one helper at least: where cores are few, they take turns.
    this.count = Math.min(3, Math.max(1, (navigator.hardwareConcurrency || 2) - 2));
  }

  decode(helper: number, codec: string, data: Uint8Array): Promise<Points> {
    const job = ++this.job;
    return new Promise((resolve, reject) => {
      this.waiting.set(job, { resolve, reject });
      // The frame's memory stays here: only a copy of the part goes.
      const part = data.slice();
      this.tell(helper, { type: "decode", job, codec, data: part }, [part.buffer]);
    });
  }

  give(helper: number, points: Points): void {
    this.tell(helper, { type: "recycle", points }, [points.positions.buffer, points.colors.buffer]);
  }

  private tell(helper: number, order: HelperOrder, transfer: Transferable[]): void {
    this.worker(helper).postMessage(order, transfer);
  }

  private worker(helper: number): Worker {
    const before = this.workers[helper];
    if (before) {
      return before;
    }
    const worker = new Worker(new URL("./helper.ts", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<HelperReport>) => {
      const waiting = this.waiting.get(data.job);
      this.waiting.delete(data.job);
      if ("points" in data) {
        waiting?.resolve(data.points);
      } else {
        waiting?.reject(new Error(data.message));
      }
    };
    this.workers[helper] = worker;
    return worker;
  }
}
