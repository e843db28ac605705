// The parts of Node used by tests.
declare module "node:fs/promises" {
  export function readFile(path: URL): Promise<Uint8Array>;
}

declare const process: {
  memoryUsage(): { arrayBuffers: number };
  cpuUsage(since?: { user: number; system: number }): { user: number; system: number };
};
