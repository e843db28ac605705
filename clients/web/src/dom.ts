// Short functions for elements.

type Child = Node | string | undefined;

/** Makes an element with properties and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, properties: Partial<Omit<HTMLElementTagNameMap[K], "style" | "children">> & { class?: string } = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  const { class: className, ...rest } = properties;
  Object.assign(element, rest);
  if (className) {
    element.className = className;
  }
  element.append(...children.filter((c) => c !== undefined));
  return element;
}

/** Returns the element of the page with that id. */
export function byId<T extends HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) {
    throw new Error(`the page has no #${id}`);
  }
  return element as T;
}

/** Formats a rate. */
export function bitrate(bps: number): string {
  return bps >= 1e6 ? `${(bps / 1e6).toFixed(bps >= 1e8 ? 0 : 1)} Mbit/s` : `${Math.round(bps / 1e3)} kbit/s`;
}

/** Formats milliseconds, with the error bound if there is one. */
export function milliseconds(ms: number, bound = 0): string {
  const digits = (v: number): string => v.toFixed(Math.abs(v) < 10 ? 1 : 0);
  return Number.isFinite(ms) ? `${digits(ms)}${bound > 0 ? ` ± ${digits(bound)}` : ""} ms` : "–";
}
