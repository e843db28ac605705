// The coverage of single inputs, by the block counts of V8 (domain Profiler of the DevTools
// protocol). V8 counts the blocks of functions that it compiles after the start: tests import this
// file before the code under test.

import { Session } from "node:inspector";

const session = new Session();
session.connect();
session.post("Profiler.enable");
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });

/** Remembers the executed parts of scripts. Reading resets V8's counts, so one object at a time is in use. */
export class Coverage {
  /** For each function, its characters: 1 for those that were executed. */
  private readonly functions = new Map<string, Uint8Array>();

  /** The addresses of the scripts that are covered match the pattern. */
  constructor(private readonly scripts: RegExp) {
    this.take();
  }

  /** Reports whether anything was executed for the first time since the last call. */
  take(): boolean {
    let fresh = false;
    session.post("Profiler.takePreciseCoverage", undefined, (error, { result }) => {
      if (error) {
        throw error;
      }
      for (const { url, functions } of result.filter((script) => this.scripts.test(script.url))) {
        for (const { ranges } of functions) {
          fresh = this.add(url, ranges) || fresh;
        }
      }
    });
    return fresh;
  }

  /** Adds the ranges of a function: first its whole range, then blocks with other counts, an outer one before its inner ones. */
  private add(url: string, ranges: CoverageRange[]): boolean {
    const { startOffset: from, endOffset: to, count } = ranges[0]!;
    if (count === 0) {
      return false;
    }
    const executed = new Uint8Array(to - from);
    for (const range of ranges) {
      executed.fill(range.count > 0 ? 1 : 0, range.startOffset - from, range.endOffset - from);
    }
    const name = `${url} ${from} ${to}`;
    const before = this.functions.get(name);
    if (!before) {
      this.functions.set(name, executed);
      return true;
    }
    let fresh = false;
    executed.forEach((one, at) => {
      if (one > before[at]!) {
        before[at] = 1;
        fresh = true;
      }
    });
    return fresh;
  }
}
