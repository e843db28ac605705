// Workers of a worker: they decode parts of a frame while it decodes one itself.

import type { Helpers } from "./parts";
import type { Points } from "./points";

/** What a helper is told. */
export type HelperOrder = { type: "decode"; job: number; codec: string; data: Uint8Array } | { type: "recycle"; points: Points };

/** What a helper answers. */
export type HelperReport = { job: number; points: Points } | { job: number; message: string };

interface Waiting {
  worker: Worker;
  resolve(points: Points): void;
  reject(error: Error): void;
}

/** Helpers that are started when the first part is there for them. */
export class HelperWorkers implements Helpers {
  private most: number;
  private readonly workers: Worker[] = [];
  private readonly waiting = new Map<number, Waiting>();
  private job = 0;

  constructor() {
    // One core is left to the page, one is this worker's own. There is one helper at least: where cores are few, they take turns.
    this.most = Math.min(3, Math.max(1, (navigator.hardwareConcurrency || 2) - 2));
  }

  /** How many there may be: fewer once some have failed. */
  get count(): number {
    return this.most;
  }

  decode(helper: number, codec: string, data: Uint8Array): Promise<Points> {
    const job = ++this.job;
    return new Promise((resolve, reject) => {
      const worker = this.worker(helper);
      this.waiting.set(job, { worker, resolve, reject });
      // The frame's memory stays here: only a copy of the part goes.
      const part = data.slice();
      tell(worker, { type: "decode", job, codec, data: part }, [part.buffer]);
    });
  }

  give(helper: number, points: Points): void {
    // Where helpers have failed since, another one has the number, whose memory it becomes, or none.
    const worker = this.workers[helper];
    if (worker) {
      tell(worker, { type: "recycle", points }, [points.positions.buffer, points.colors.buffer]);
    }
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
    worker.onerror = (event) => this.failed(worker, event.message || "what decodes parts of frames cannot be loaded");
    this.workers[helper] = worker;
    return worker;
  }

  /** Goes on without a helper: a page that was open while its server was upgraded asks for files that are no more. */
  private failed(worker: Worker, message: string): void {
    const at = this.workers.indexOf(worker);
    if (at < 0) {
      return;
    }
    worker.terminate();
    this.workers.splice(at, 1);
    this.most--;
    for (const [job, waiting] of this.waiting) {
      if (waiting.worker === worker) {
        this.waiting.delete(job);
        waiting.reject(new Error(message));
      }
    }
  }
}

function tell(worker: Worker, order: HelperOrder, transfer: Transferable[]): void {
  worker.postMessage(order, transfer);
}
