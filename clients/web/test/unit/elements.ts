// Elements without a browser: the part that h uses, for tests.

import { vi } from "vitest";

export class FakeElement {
  static focused: FakeElement | undefined;
  children: (FakeElement | string)[] = [];
  hidden = false;
  className = "";
  dataset: Record<string, string> = {};
  textContent = "";
  role: string | undefined;
  value = "";
  removed = false;
  readonly part = { add: (): void => {} };
  private readonly listeners = new Map<string, ((event: object) => void)[]>();

  constructor(readonly tag: string) {}

  append(...children: (FakeElement | string)[]): void {
    this.children.push(...children);
  }

  prepend(...children: (FakeElement | string)[]): void {
    this.children.unshift(...children);
  }

  remove(): void {
    this.removed = true;
  }

  focus(): void {
    FakeElement.focused = this;
  }

  addEventListener(type: string, listener: (event: object) => void): void {
    this.listeners.set(type, [...(this.listeners.get(type) ?? []), listener]);
  }

  dispatch(type: string, event: object = {}): void {
    for (const listener of this.listeners.get(type) ?? []) {
      listener(event);
    }
  }

  click(): void {
    this.dispatch("click");
  }
}

/** Installs these elements until vi.unstubAllGlobals. */
export function stubElements(): void {
  vi.stubGlobal("document", { createElement: (tag: string) => new FakeElement(tag) });
  vi.stubGlobal("HTMLInputElement", class {});
  vi.stubGlobal("HTMLSelectElement", class {});
}
