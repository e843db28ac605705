// The package's form of src/client/workers.ts. All workers are one script, which takes its role from
// its name. The script and the WebAssembly are part of modules that bundlers and pages of any origin
// load like all others. Workers start from blob: addresses of the page, or from a folder of a server.

import wasm from "volsfu:wasm";
import type { Crew } from "../src/client/workers";

/** The addresses of files, by name. */
const files = new Map<string, string>();
const scriptName = "worker.js";

export async function loadWorkers(crew: Crew, folder?: string): Promise<void> {
  const names = [scriptName, ...Object.keys(wasm).filter((name) => crew === "publish" || !name.includes("encoder"))];
  const missing = names.filter((name) => !files.has(name));
  if (folder !== undefined) {
    const base = new URL(folder.endsWith("/") ? folder : `${folder}/`, import.meta.url);
    missing.forEach((name) => files.set(name, new URL(name, base).href));
    return;
  }
  const loaded = await Promise.all(missing.map(async (name) => [name, name === scriptName ? await script() : await binary(name)] as const));
  for (const [name, blob] of loaded) {
    if (!files.has(name)) {
      files.set(name, URL.createObjectURL(blob));
    }
  }
}

async function script(): Promise<Blob> {
  const { default: text } = await import("volsfu:worker");
  return new Blob([text], { type: "text/javascript" });
}

async function binary(name: string): Promise<Blob> {
  const { default: base64 } = await wasm[name]!();
  return new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], { type: "application/wasm" });
}

/** Starts a worker by the path of its module in src. */
export function startWorker(role: string): Worker {
  const { [scriptName]: script = "", ...rest } = Object.fromEntries(files);
  return new Worker(script, { type: "module", name: JSON.stringify({ role, files: rest }) });
}
