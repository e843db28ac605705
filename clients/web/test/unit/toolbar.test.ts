import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { toggleFullScreen } from "../../src/viewer/fullscreen";
import { letterOf, Toolbar } from "../../src/viewer/toolbar";
import { stubElements } from "./elements";

const press = (key: string, code: string, more: object = {}): KeyboardEvent =>
  ({ key, code, target: {}, ctrlKey: false, metaKey: false, altKey: false, repeat: false, ...more }) as unknown as KeyboardEvent;

describe("letterOf", () => {
  it.each([
    ["p", "KeyP", "p"],
    ["P", "KeyP", "p"],
    // A Latin keyboard with another layout reports its own letters.
    ["p", "KeyR", "p"],
    ["з", "KeyP", "p"],
    ["Enter", "Enter", ""],
    ["1", "Digit1", ""],
    ["Process", "KeyP", ""],
  ])("of %s at %s is %j", (key, code, letter) => {
    expect(letterOf({ key, code })).toBe(letter);
  });
});

describe("Toolbar", () => {
  beforeEach(() => stubElements());
  afterEach(() => vi.unstubAllGlobals());

  it("hears keys with capitals locked, but not what belongs to the browser", () => {
    const toolbar = new Toolbar(() => {});
    const act = vi.fn();
    toolbar.add("Inspect", "i", act);
    toolbar.key(press("I", "KeyI"));
    toolbar.key(press("i", "KeyI", { ctrlKey: true }));
    toolbar.key(press("i", "KeyI", { repeat: true }));
    toolbar.key(press("x", "KeyX"));
    expect(act).toHaveBeenCalledTimes(1);
  });

  it("leaves letters to what takes them", () => {
    class Input {
      constructor(readonly type: string) {}
    }
    class Select {}
    vi.stubGlobal("HTMLInputElement", Input);
    vi.stubGlobal("HTMLSelectElement", Select);
    const toolbar = new Toolbar(() => {});
    const act = vi.fn();
    toolbar.add("Inspect", "i", act);
    for (const target of [new Input("text"), new Input("number"), new Input("password"), new Select()]) {
      toolbar.key(press("i", "KeyI", { target }));
    }
    expect(act).not.toHaveBeenCalled();
    for (const target of [new Input("radio"), new Input("checkbox")]) {
      toolbar.key(press("i", "KeyI", { target }));
    }
    expect(act).toHaveBeenCalledTimes(2);
  });

  it("tells screen readers the keys, and which controls switch a mode", () => {
    const toolbar = new Toolbar(() => {});
    const controls = [toolbar.add("Sound", "m", () => true), toolbar.add("Leave", "", () => {}, false)];
    expect(controls.map(({ ariaPressed, ariaKeyShortcuts }) => [ariaPressed, ariaKeyShortcuts])).toEqual([["false", "M"], [undefined, undefined]]);
  });

  it("shows what is on, and says what did not work", async () => {
    const said: string[] = [];
    const toolbar = new Toolbar((message) => said.push(message));
    const on = toolbar.add("Tint", "t", () => true);
    const broken = toolbar.add("Full screen", "f", async () => {
      throw new Error("the browser refuses it");
    });
    on.click();
    broken.click();
    await new Promise((resolve) => setTimeout(resolve));
    expect([on.ariaPressed, broken.ariaPressed]).toEqual(["true", "false"]);
    expect(said).toEqual(["Full screen: the browser refuses it"]);
  });
});

describe("toggleFullScreen", () => {
  afterEach(() => vi.unstubAllGlobals());
  const page = (more: object): unknown => vi.stubGlobal("document", { fullscreenEnabled: true, fullscreenElement: null, ...more });

  it("says what the browser refuses, and what it has not", async () => {
    page({ documentElement: { requestFullscreen: () => Promise.reject(new TypeError("not granted")) } });
    await expect(toggleFullScreen()).rejects.toThrow("the browser refuses it (not granted)");
    page({ fullscreenEnabled: false, documentElement: {} });
    await expect(toggleFullScreen()).rejects.toThrow("no permission for full screen");
  });

  it("goes there, and comes back", async () => {
    page({ documentElement: { requestFullscreen: async () => {} } });
    expect(await toggleFullScreen()).toBe(true);
    page({ fullscreenElement: {}, exitFullscreen: async () => {} });
    expect(await toggleFullScreen()).toBe(false);
  });
});
