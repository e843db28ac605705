// Helper workers of a decoding worker: they decode parts of a frame in parallel with that worker.

import type { Helpers } from "./parts";
import type { Points } from "./points";

/** Messages to a helper. */
export type HelperOrder = { type: "decode"; job: number; codec: string; data: Uint8Array } | { type: "recycle"; points: Points };

/** Messages from a helper. */
export type HelperReport = { job: number; points: Points } | { job: number; message: string };

interface Waiting {
  worker: Worker;
  resolve(points: Points): void;
  reject(error: Error): void;
}

/** Helpers that start with their first part. */
export class HelperWorkers implements Helpers {
  private most: number;
  private readonly workers: Worker[] = [];
  private readonly waiting = new Map<number, Waiting>();
  private job = 0;

  constructor() {
    // One core is for the page and one for this worker. There is at least one helper, even with few
    // cores.
    this.most = Math.min(3, Math.max(1, (navigator.hardwareConcurrency || 2) - 2));
  }

  /** The maximum number of helpers; it decreases when some fail. */
  get count(): number {
    return this.most;
  }

  decode(helper: number, codec: string, data: Uint8Array): Promise<Points> {
    const job = ++this.job;
    return new Promise((resolve, reject) => {
      const worker = this.worker(helper);
      this.waiting.set(job, { worker, resolve, reject });
      // The frame's memory remains here: the helper receives a copy of the part.
      const part = data.slice();
      tell(worker, { type: "decode", job, codec, data: part }, [part.buffer]);
    });
  }

  give(helper: number, points: Points): void {
    // After failures of helpers, the number may be that of another helper, which then receives the
    // memory, or of none.
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
    worker.onerror = (event) => this.failed(worker, event.message || "the decoder for parts of frames cannot be loaded");
    this.workers[helper] = worker;
    return worker;
  }

  /**
   * Continues without a helper. A page that was open during an upgrade of its server requests files
   * that no longer exist.
   */
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
