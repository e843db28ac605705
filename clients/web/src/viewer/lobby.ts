// The page before entering a room: the available rooms, and missing requirements.

import { h } from "../dom";
import { morph } from "../morph";
import { explain, listRooms, type RoomSummary } from "../signal/rooms";
import { claimsOf } from "../token";

export interface Entry {
  room: string;
  identity: string;
  token: string;
  /** The text of the key for end-to-end encryption; empty without. */
  key: string;
  /** Frames are decoded and shown; ?decode=off only counts them. */
  decode: boolean;
  /**
   * Frames arrive over data channels, if the browser has no script access to media lines, or
   * because of ?delivery=data.
   */
  receiveData: boolean;
  /**
   * The user publishes: immediately with the settings of the link, or after choosing them in the
   * panel.
   */
  show: "at once" | "ask" | undefined;
}

const refreshInterval = 2000;

export class Lobby {
  private readonly rooms = h("ul", { class: "rooms" });
  private readonly problem = h("p", { class: "problem", role: "alert" });
  private readonly token: HTMLInputElement;
  private readonly key: HTMLInputElement;
  private readonly identity: HTMLInputElement;
  private readonly receiveData: boolean;
  private readonly room: HTMLInputElement;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly element: HTMLElement,
    entry: Entry,
    private readonly enter: (entry: Entry) => void,
  ) {
    this.receiveData = entry.receiveData;
    this.identity = h("input", { id: "identity", value: entry.identity, autocomplete: "username", maxLength: 128, required: true });
    this.room = h("input", { id: "room-name", value: entry.room, autocomplete: "off", maxLength: 128, placeholder: "demo", required: true });
    this.token = h("input", { id: "token", value: entry.token, autocomplete: "off", spellcheck: false, type: "password" });
    this.key = h("input", { id: "key", value: entry.key, autocomplete: "off", spellcheck: false, type: "password" });
    // One listener serves all rooms, since rooms are added and removed.
    this.rooms.addEventListener("click", (event) => {
      const room = event.target instanceof Element ? event.target.closest("button")?.dataset["room"] : undefined;
      if (room !== undefined) {
        this.go(room);
      }
    });
    const join = h("button", { type: "button", class: "secondary" }, "Join as yourself");
    join.addEventListener("click", () => form.reportValidity() && this.go(this.room.value.trim(), "ask"));
    const form = h(
      "form", {},
      h("label", {}, "Your name", this.identity),
      h("label", {}, "Room", this.room),
      h("label", {}, "Token", this.token, h("small", {}, "Not needed on a server that runs with --dev.")),
      h("label", {}, "Key", this.key, h("small", {}, "Only for encrypted rooms: a passphrase, or EPOCH:HEX. It is not sent to the server.")),
      h("div", { class: "ways" }, h("button", { type: "submit", class: "primary" }, "Watch"), join),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.go(this.room.value.trim());
    });
    this.token.addEventListener("change", () => {
      // The user cannot change the names that the token is bound to.
      const bound = claimsOf(this.token.value.trim());
      this.identity.value = bound.identity || this.identity.value;
      this.room.value = bound.room || this.room.value;
      void this.refresh();
    });
    element.replaceChildren(
      h("h1", {}, "volsfu"), h("p", { class: "claim" }, "People as point clouds, live."), this.problem, h("h2", {}, "Rooms"), this.rooms, form,
    );
  }

  show(problem = ""): void {
    this.element.hidden = false;
    this.say(problem);
    void this.refresh();
    this.timer = setInterval(() => void this.refresh(), refreshInterval);
  }

  hide(): void {
    this.element.hidden = true;
    clearInterval(this.timer);
  }

  private go(room: string, show?: "ask"): void {
    if (!this.identity.reportValidity()) {
      return;
    }
    this.enter({ room, identity: this.identity.value.trim(), token: this.token.value.trim(), key: this.key.value, decode: true, receiveData: this.receiveData, show });
  }

  private say(problem: string): void {
    this.problem.textContent = problem;
    this.problem.hidden = problem === "";
  }

  private async refresh(): Promise<void> {
    const token = this.token.value.trim();
    try {
      this.list(await listRooms("", token));
    } catch (error) {
      morph(this.rooms, [h("li", { class: "empty" }, explain(token, error))]);
    }
  }

  private list(rooms: RoomSummary[]): void {
    if (rooms.length === 0) {
      morph(this.rooms, [h("li", { class: "empty" }, "There is no room yet. Start a demonstration with: make demo")]);
      return;
    }
    morph(this.rooms, rooms.map((r) => {
      const button = h(
        "button", { type: "button", class: "room-card" },
        h("strong", {}, r.name), h("span", {}, `${count(r.participants, "person", "people")} · ${count(r.publications, "publication", "publications")}`),
      );
      button.dataset["room"] = r.name;
      const item = h("li", {}, button);
      item.dataset["key"] = r.name;
      return item;
    }));
  }
}

function count(n: number, one: string, many: string): string {
  return `${n} ${n === 1 ? one : many}`;
}
