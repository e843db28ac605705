// The parts of Node used by tests.
declare module "node:fs/promises" {
  export function readFile(path: URL): Promise<Uint8Array>;
}

/** A part of a script with the number of its executions. */
interface CoverageRange {
  startOffset: number;
  endOffset: number;
  count: number;
}

declare module "node:inspector" {
  export class Session {
    connect(): void;
    post(method: string, parameters?: object): void;
    post(
      method: "Profiler.takePreciseCoverage",
      parameters: undefined,
      done: (error: Error | null, reply: { result: { url: string; functions: { ranges: CoverageRange[] }[] }[] }) => void,
    ): void;
  }
}

declare const process: {
  env: Record<string, string | undefined>;
  memoryUsage(): { arrayBuffers: number };
  cpuUsage(since?: { user: number; system: number }): { user: number; system: number };
};
