// The controls of a room: buttons, each with a key.

import { h } from "../dom";

/** The action of a control. It may return whether a mode is now on. */
export type Act = () => boolean | void | Promise<boolean | void>;

export class Toolbar {
  readonly element = h("nav", { class: "toolbar", ariaLabel: "Controls" });
  private readonly keys = new Map<string, HTMLButtonElement>();

  /** @param say shows a message to the user */
  constructor(private readonly say: (message: string) => void) {}

  /**
   * Adds a control. Its key is a small letter, or none.
   * @param switches the control switches a mode on and off
   */
  add(label: string, key: string, act: Act, switches = true): HTMLButtonElement {
    const letter = key.toUpperCase();
    const button = h(
      "button", { type: "button", title: key ? `${label} (${letter})` : label, ...(key ? { ariaKeyShortcuts: letter } : {}), ...(switches ? { ariaPressed: "false" } : {}) }, label,
    );
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

  /** Handles a key of the page, except for input in fields and for shortcuts of the browser. */
  readonly key = (event: KeyboardEvent): void => {
    if (!takesLetters(event.target) && !event.repeat && !event.ctrlKey && !event.metaKey && !event.altKey) {
      this.keys.get(letterOf(event))?.click();
    }
  };
}

/**
 * Reports whether an element uses letters: text fields do, and lists, which select by first letter;
 * checkboxes do not.
 */
function takesLetters(target: EventTarget | null): boolean {
  return target instanceof HTMLSelectElement || (target instanceof HTMLInputElement && target.type !== "radio" && target.type !== "checkbox");
}

/**
 * Returns the small letter of a key, also with caps lock. On non-Latin keyboards it is the letter
 * at the same position of a Latin one.
 */
export function letterOf({ key, code }: { key: string; code: string }): string {
  if (/^[a-z]$/i.test(key)) {
    return key.toLowerCase();
  }
  return /^Key[A-Z]$/.test(code) && key.length === 1 ? code.slice(3).toLowerCase() : "";
}
