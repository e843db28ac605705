// The line above a publication of this page: its state, and figures.

import { h } from "../dom";

export class StatusLine {
  /** Screen readers read the state when it changes. The figures change with every refresh, and are not read. */
  private readonly state = h("span", { role: "status" });
  private readonly figures = h("span");
  readonly element = h("p", { class: "headline" }, h("span", {}, this.state, this.figures));

  /** @param live marks the line: media leaves the page */
  show(state: string, figures: string, live: boolean): void {
    if (this.state.textContent !== state) {
      this.state.textContent = state;
    }
    this.figures.textContent = figures;
    this.element.dataset["live"] = String(live);
  }
}
