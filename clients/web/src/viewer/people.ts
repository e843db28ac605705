// The names of the participants in the room.

import { h } from "../dom";
import { morph } from "../morph";

export class PeopleList {
  readonly element = h("ul", { class: "people", ariaLabel: "Who is here" });

  /** @param look is called with the name that was pressed */
  constructor(look: (who: string) => void) {
    // One listener serves all names, since participants join and leave.
    this.element.addEventListener("click", (event) => {
      const who = event.target instanceof Element ? event.target.closest("button")?.dataset["who"] : undefined;
      if (who !== undefined) {
        look(who);
      }
    });
  }

  show(people: readonly string[]): void {
    const items = people.map((who) => {
      const button = h("button", { type: "button", title: `Look at ${who}` }, who);
      button.dataset["who"] = who;
      const item = h("li", {}, button);
      item.dataset["key"] = who;
      return item;
    });
    morph(this.element, items.length > 0 ? items : [h("li", { class: "empty" }, "nobody else is here yet")]);
  }
}
