// The chat of a room: a panel with messages of the topic "chat", and the number of unread ones.

import { h } from "../dom";
import type { Data } from "../signal/messages";

/** The topic of chat messages. */
export const chatTopic = "chat";
/** The number of messages that the panel keeps. */
const mostMessages = 200;
/** The longest message, in characters. */
const longestMessage = 2000;

export interface ChatActs {
  /** Sends a message, and returns the reason if the server refused it. */
  say(text: string): Promise<string | undefined>;
  /** Returns the name to show for a participant. */
  name(identity: string): string;
  /** The number of unread messages has changed. */
  unread(count: number): void;
  /** The user closes the panel. */
  close(): void;
}

export class Chat {
  readonly element: HTMLElement;
  private readonly list = h("ol", { class: "lines", role: "log", ariaLabel: "Messages" });
  private readonly field = h("input", { type: "text", maxLength: longestMessage, placeholder: "Message to everyone", ariaLabel: "Message to everyone", autocomplete: "off" });
  private unread = 0;

  constructor(private readonly acts: ChatActs) {
    const close = h("button", { type: "button", class: "close", ariaLabel: "Close", title: "Close" }, "×");
    close.addEventListener("click", () => acts.close());
    const form = h("form", {}, this.field, h("button", { type: "submit", class: "primary" }, "Send"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.send();
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        close.click();
      }
    });
    this.element = h("aside", { class: "chat", hidden: true, ariaLabel: "Chat" }, h("header", {}, h("h2", {}, "Chat"), close), this.list, form);
  }

  /** Opens or closes the panel, and reports whether it is open. */
  toggle(): boolean {
    this.element.hidden = !this.element.hidden;
    if (!this.element.hidden) {
      this.count(0);
      this.list.scrollTop = this.list.scrollHeight;
      this.field.focus();
    }
    return !this.element.hidden;
  }

  /** Shows a message of another participant, or of the operator. Binary messages are not shown. */
  take({ topic, text, participant }: Data): void {
    if (topic !== chatTopic || text === undefined) {
      return;
    }
    this.append(participant === undefined ? "operator" : this.acts.name(participant), text);
    if (this.element.hidden) {
      this.count(this.unread + 1);
    }
  }

  private async send(): Promise<void> {
    const text = this.field.value.trim();
    if (text === "") {
      return;
    }
    this.field.value = "";
    const line = this.append("you", text);
    line.classList.add("own", "waits");
    const refused = await this.acts.say(text);
    line.classList.remove("waits");
    if (refused !== undefined) {
      line.append(h("small", { class: "problem" }, `not sent: ${refused}`));
    }
  }

  /** Adds a line. The text is shown as it is, never as HTML. */
  private append(who: string, text: string): HTMLLIElement {
    const { list } = this;
    // A reader who has scrolled up stays there.
    const follows = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    const line = h("li", {}, h("b", {}, who), h("span", {}, text));
    list.append(line);
    while (list.childElementCount > mostMessages) {
      list.firstElementChild!.remove();
    }
    if (follows) {
      list.scrollTop = list.scrollHeight;
    }
    return line;
  }

  private count(unread: number): void {
    this.unread = unread;
    this.acts.unread(unread);
  }
}
