// A page for tests: it decodes frames in a worker, as the viewer does.

import type { Outcome } from "./worker";

declare global {
  /** Stores a base64 frame for the next call of decode. */
  function hold(codec: string, data: string): void;
  function decode(): Promise<Outcome>;
}

const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
let held: { codec: string; data: Uint8Array<ArrayBuffer> } | undefined;

globalThis.hold = (codec, data) => {
  held = { codec, data: Uint8Array.from(atob(data), (c) => c.charCodeAt(0)) };
};

globalThis.decode = () =>
  new Promise((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<Outcome>) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message || "the worker cannot be loaded"));
    worker.postMessage(held, [held!.data.buffer]);
    held = undefined;
  });
