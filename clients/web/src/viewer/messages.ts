// Short messages to the user at the edge of the screen.

import { h } from "../dom";

const shownFor = 6000;
const atOnce = 4;

export class Messages {
  constructor(private readonly element: HTMLElement) {}

  /** Shows a message for a few seconds. */
  say(text: string): void {
    const message = h("p", {}, text);
    this.element.append(message);
    while (this.element.children.length > atOnce) {
      this.element.firstElementChild?.remove();
    }
    setTimeout(() => message.remove(), shownFor);
  }

  /** Shows a permanent message, once. */
  keep(text: string): void {
    if (this.kept(text).length === 0) {
      this.element.append(h("p", { class: "kept" }, text));
    }
  }

  /** Removes a permanent message. */
  drop(text: string): void {
    this.kept(text).forEach((message) => message.remove());
  }

  private kept(text: string): Element[] {
    return [...this.element.querySelectorAll(".kept")].filter((message) => message.textContent === text);
  }
}
