// The names of the participants in the room, and whose sound is muted.

import { h } from "../dom";
import { morph } from "../morph";

export interface Person {
  identity: string;
  name: string;
  /** The person's sound is muted. */
  muted: boolean;
}

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

  /** Marks the name of a person who speaks. The level is from 0 to 1. */
  speak(identity: string, level: number): void {
    this.element.querySelector(`[data-key=${CSS.escape(identity)}]`)?.classList.toggle("speaking", level > 0.1);
  }

  /** @param audience the number of further people, who only watch and are not named */
  show(people: readonly Person[], audience: number): void {
    const items = people.map(({ identity, name, muted }) => {
      const button = h("button", { type: "button", title: `Look at ${name}` }, name);
      button.dataset["who"] = identity;
      const item = h("li", {}, button, muted ? h("small", { class: "muted", title: `${name} is muted` }, "muted") : undefined);
      item.dataset["key"] = identity;
      return item;
    });
    if (audience > 0) {
      items.push(h("li", { class: "audience" }, audience === 1 ? "1 viewer" : `${audience.toLocaleString("en")} viewers`));
    }
    morph(this.element, items.length > 0 ? items : [h("li", { class: "empty" }, "nobody else is here yet")]);
  }
}
