// The loss of the graphics card: after an error of its driver, or when too many pages draw, browsers take it from a
// page for a while, or for good. The renderer continues by itself when it is given back.

export const graphicsLost = "The browser has taken the graphics card from this page, and the picture stands still. It continues when the browser gives it back. If that takes long, reload the page.";

/** Reports that a canvas has lost the graphics card, and that it has the card again. */
export function watchGraphics(canvas: EventTarget, signal: AbortSignal, changed: (lost: boolean) => void): void {
  canvas.addEventListener("webglcontextlost", () => changed(true), { signal });
  canvas.addEventListener("webglcontextrestored", () => changed(false), { signal });
}
