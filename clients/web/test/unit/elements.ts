// Elements without a browser: the part that h uses, for tests.

import { vi } from "vitest";

export class FakeElement {
  children: (FakeElement | string)[] = [];
  hidden = false;
  className = "";
  dataset: Record<string, string> = {};
  textContent = "";
  private readonly listeners = new Map<string, (() => void)[]>();

  constructor(readonly tag: string) {}

  append(...children: (FakeElement | string)[]): void {
    this.children.push(...children);
  }

  addEventListener(type: string, listener: () => void): void {
    this.listeners.set(type, [...(this.listeners.get(type) ?? []), listener]);
  }

  click(): void {
    for (const listener of this.listeners.get("click") ?? []) {
      listener();
    }
  }
}

/** Installs these elements until vi.unstubAllGlobals. */
export function stubElements(): void {
  vi.stubGlobal("document", { createElement: (tag: string) => new FakeElement(tag) });
  vi.stubGlobal("HTMLInputElement", class {});
  vi.stubGlobal("HTMLSelectElement", class {});
}
