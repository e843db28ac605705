import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { StatusLine } from "../../src/publish/statusline";
import { type FakeElement, stubElements } from "./elements";

beforeEach(() => stubElements());
afterEach(() => vi.unstubAllGlobals());

it("has screen readers read the state, and not the figures", () => {
  const line = new StatusLine();
  line.show("Live", ": 3 Mbit/s", true);
  const { children, dataset } = line.element as unknown as FakeElement;
  const spans = (children[0] as FakeElement).children as FakeElement[];
  expect(spans.map(({ textContent, role }) => [textContent, role])).toEqual([["Live", "status"], [": 3 Mbit/s", undefined]]);
  expect(dataset["live"]).toBe("true");
});
