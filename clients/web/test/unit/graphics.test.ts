import { expect, it } from "vitest";
import { watchGraphics } from "../../src/scene/graphics";

it("reports the loss of the graphics card until the canvas is given up", () => {
  const canvas = new EventTarget();
  const over = new AbortController();
  const told: boolean[] = [];
  watchGraphics(canvas, over.signal, (lost) => told.push(lost));
  canvas.dispatchEvent(new Event("webglcontextlost"));
  canvas.dispatchEvent(new Event("webglcontextrestored"));
  over.abort();
  canvas.dispatchEvent(new Event("webglcontextlost"));
  expect(told).toEqual([true, false]);
});
