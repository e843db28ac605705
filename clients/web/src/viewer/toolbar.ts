// The controls of a room: buttons, and a key for each.

import { h } from "../dom";

/** What a control does. It may tell whether something is on from then on. */
export type Act = () => boolean | void | Promise<boolean | void>;

export class Toolbar {
  readonly element = h("nav", { class: "toolbar", ariaLabel: "Controls" });
  private readonly keys = new Map<string, HTMLButtonElement>();

  /**
   * @param say tells a person what did not work
   */
  constructor(private readonly say: (message: string) => void) {}

  /** Adds a control. Its key is a small letter, or none. */
  add(label: string, key: string, act: Act): HTMLButtonElement {
    const button = h("button", { type: "button", title: key ? `${label} (${key.toUpperCase()})` : label, ariaPressed: "false" }, label);
    button.addEventListener("click", () => void this.press(button, label, act));
    if (key) {
      this.keys.set(key, button);
    }
    this.element.append(button);
    return button;
  }

  private async press(button: HTMLButtonElement, label: string, act: Act): Promise<void> {
    try {
      const on = await act();
      if (typeof on === "boolean") {
        button.ariaPressed = String(on);
      }
    } catch (error) {
      this.say(`${label}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /** Hears a key of the page, but for what is typed somewhere, and for what belongs to the browser. */
  readonly key = (event: KeyboardEvent): void => {
    if (!takesLetters(event.target) && !event.repeat && !event.ctrlKey && !event.metaKey && !event.altKey) {
      this.keys.get(letterOf(event))?.click();
    }
  };
}

/** Tells whether letters mean something where they are typed: fields do, and lists, which go to what begins with them; boxes to check do not. */
function takesLetters(target: EventTarget | null): boolean {
  return target instanceof HTMLSelectElement || (target instanceof HTMLInputElement && target.type !== "radio" && target.type !== "checkbox");
}

/** The small letter of a key, whether capitals are locked or not. On keyboards with other letters it is the one that stands in its place on a Latin one. */
export function letterOf({ key, code }: { key: string; code: string }): string {
  if (/^[a-z]$/i.test(key)) {
    return key.toLowerCase();
  }
  return /^Key[A-Z]$/.test(code) && key.length === 1 ? code.slice(3).toLowerCase() : "";
}
