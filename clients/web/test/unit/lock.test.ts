import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Conference } from "../../src/viewer/conference";
import { Lock } from "../../src/viewer/lock";
import { FakeElement, stubElements } from "./elements";

vi.mock("../../src/viewer/lock.css", () => ({}));
vi.mock("../../src/morph", () => ({ morph: () => {} }));

beforeEach(() => {
  vi.useFakeTimers();
  stubElements();
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

it("returns the keyboard focus to its button when its panel is closed", () => {
  const lock = new Lock({ encryption: undefined, secrecy: { states: () => new Map() } } as unknown as Conference, () => {});
  const [button, panel] = [lock.button, lock.panel] as unknown as [FakeElement & { ariaExpanded: string }, FakeElement];
  button.click();
  expect([panel.hidden, button.ariaExpanded, FakeElement.focused?.tag]).toEqual([false, "true", "input"]);
  panel.dispatch("keydown", { key: "Escape" });
  expect([panel.hidden, button.ariaExpanded, FakeElement.focused]).toEqual([true, "false", button]);
  lock.close();
});
