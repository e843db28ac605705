// The sign for the state of encryption, and the panel with the state of every participant and the
// field for the key.

import "./lock.css";
import { h } from "../dom";
import { morph } from "../morph";
import { cannotEncrypt, type Encryption } from "../sframe/encryption";
import { type Reason, reasons } from "../sframe/opener";
import { parseKey, passphraseEpoch } from "../sframe/secret";
import type { Conference } from "./conference";
import { type Refusal, sentenceOf } from "./secrecy";

const refreshInterval = 500;

/** The words for rejected frames in the panel. */
const words: Record<Reason, string> = {
  no_key: "without a key",
  unknown_epoch: "of unknown epochs",
  wrong_key: "of another key",
  altered: "altered",
  replay: "repeated",
  malformed: "malformed",
  not_encrypted: "not encrypted",
  unknown_scheme: "of an unknown scheme",
};

export class Lock {
  readonly button = h("button", { type: "button", class: "lock", hidden: true, ariaExpanded: "false" });
  readonly panel: HTMLElement;
  private readonly headline = h("p", { class: "headline", role: "status" });
  private readonly people = h("ul");
  private readonly figures = h("p", { class: "figures" });
  private readonly problem = h("p", { class: "problem", hidden: true, role: "alert" });
  private readonly field = h("input", { type: "password", autocomplete: "off", spellcheck: false, required: true });
  private readonly forget = h("button", { type: "button", class: "secondary" }, "Forget older keys");
  private readonly timer: ReturnType<typeof setInterval>;

  /** @param rejoin enters the room again with a key: a page without one does not decrypt */
  constructor(
    private readonly conference: Conference,
    private readonly rejoin: (key: string) => void,
  ) {
    const close = h("button", { type: "button", class: "close", ariaLabel: "Close", title: "Close" }, "×");
    close.addEventListener("click", () => this.toggle());
    this.button.addEventListener("click", () => this.toggle());
    this.forget.addEventListener("click", () => this.forgetOlder());
    const form = h(
      "form", {},
      h("label", {}, "Key of the room", this.field, h("small", {}, "A passphrase, or EPOCH:HEX. It stays in this page, and is not sent to the server.")),
      h("div", { class: "acts" }, h("button", { type: "submit", class: "primary" }, "Use this key"), this.forget),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.enter(this.field.value);
    });
    this.panel = h("aside", { class: "secrecy", hidden: true, ariaLabel: "Encryption" }, h("header", {}, h("h2", {}, "Encryption"), close), this.headline, this.people, this.figures, form, this.problem);
    this.panel.addEventListener("keydown", ({ key }) => {
      if (key === "Escape") {
        this.toggle();
      }
    });
    this.timer = setInterval(() => this.refresh(), refreshInterval);
  }

  /** Opens or closes the panel. When it closes, the keyboard focus returns to the button. */
  toggle(): void {
    this.panel.hidden = !this.panel.hidden;
    this.button.ariaExpanded = String(!this.panel.hidden);
    if (this.panel.hidden) {
      this.button.focus();
    } else {
      this.refresh();
      this.field.focus();
    }
  }

  close(): void {
    clearInterval(this.timer);
  }

  private enter(text: string): void {
    const { encryption } = this.conference;
    try {
      const missing = cannotEncrypt();
      if (missing) {
        throw new Error(missing);
      }
      const key = parseKey(text);
      if (encryption) {
        encryption.setKey(key);
        encryption.use(key.kind === "raw" ? key.epoch : passphraseEpoch);
      } else {
        this.rejoin(text);
      }
      this.field.value = "";
      this.problem.hidden = true;
    } catch (error) {
      this.problem.textContent = error instanceof Error ? error.message : String(error);
      this.problem.hidden = false;
    }
    this.refresh();
  }

  private forgetOlder(): void {
    const { encryption } = this.conference;
    for (const epoch of encryption?.epochs ?? []) {
      if (epoch !== encryption!.using) {
        encryption!.forget(epoch);
      }
    }
    this.refresh();
  }

  refresh(): void {
    const { encryption } = this.conference;
    const states = this.conference.secrecy.states();
    const refused = [...states].filter(([, state]) => state !== "opened") as [string, Refusal][];
    this.button.hidden = !encryption && refused.length === 0;
    const sign = signOf(encryption !== undefined, refused);
    if (this.button.textContent !== sign.label) {
      this.button.textContent = sign.label;
    }
    this.button.title = sign.title;
    this.button.dataset["state"] = sign.state;
    if (this.panel.hidden) {
      return;
    }
    // Screen readers would read an equal text again.
    if (this.headline.textContent !== sign.title) {
      this.headline.textContent = sign.title;
    }
    morph(this.people, [...states].map(([who, state]) => {
      const item = h("li", { class: state === "opened" ? "good" : "bad" }, state === "opened" ? `${who} is encrypted, and this page has the key.` : sentenceOf(who, state));
      item.dataset["key"] = who;
      return item;
    }));
    this.figures.textContent = encryption ? figuresOf(encryption) : "";
    this.forget.hidden = (encryption?.epochs.size ?? 0) < 2;
  }
}

function signOf(hasKey: boolean, refused: readonly [string, Refusal][]): { state: string; label: string; title: string } {
  const reason = refused[0]?.[1];
  if (!hasKey) {
    return { state: "missing", label: "Key needed", title: "People here are encrypted, and this page has no key." };
  }
  if (reason === undefined) {
    return { state: "good", label: "Encrypted", title: "Pictures and sound are encrypted from end to end. The server has no key." };
  }
  if (reason === "wrong_key" || reason === "unknown_epoch") {
    return { state: "bad", label: "Wrong key", title: `This page does not have the key of ${refused.length === 1 ? refused[0]![0] : `${refused.length} people`}.` };
  }
  return { state: "bad", label: reason === "not_encrypted" || reason === "picture" ? "Not everybody" : "Rejected frames", title: `Pictures and sound of this page are encrypted. Those of ${refused.length === 1 ? refused[0]![0] : `${refused.length} people`} are not shown.` };
}

/** Returns the counts of frames in words. */
function figuresOf(encryption: Encryption): string {
  const { opened } = encryption.total;
  const rejected = reasons.flatMap((reason) => {
    const count = [...encryption.counts.values()].reduce((sum, counts) => sum + counts[reason], 0);
    return count > 0 ? [`${count.toLocaleString("en")} ${words[reason]}`] : [];
  });
  const epoch = encryption.using === undefined ? "" : ` Keys of epoch ${encryption.using} are used for sending.`;
  return `${opened.toLocaleString("en")} frames and packets decrypted; rejected: ${rejected.length > 0 ? rejected.join(", ") : "none"}.${epoch}`;
}
