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
    if (![...this.element.querySelectorAll(".kept")].some((kept) => kept.textContent === text)) {
      this.element.append(h("p", { class: "kept" }, text));
    }
  }
}
