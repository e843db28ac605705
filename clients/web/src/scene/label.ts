// Text in space, drawn on small canvases.

import { CanvasTexture, LinearFilter, SRGBColorSpace } from "three";

const font = "600 44px system-ui, sans-serif";
const canvasHeight = 76;
const margin = 24;
/** The greatest width of the text in pixels; longer text is narrowed, and cut at twice this width. */
const mostWidth = 640;

/** Draws light text, on a dark rounded ground if requested. Returns the texture with its ratio, width over height. */
export function textTexture(text: string, grounded: boolean): { map: CanvasTexture; ratio: number } {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d")!;
  context.font = font;
  const shown = shortened(text, (t) => context.measureText(t).width <= 2 * mostWidth);
  const width = Math.ceil(Math.min(context.measureText(shown).width, mostWidth)) + 2 * margin;
  canvas.width = width;
  canvas.height = canvasHeight;
  context.font = font;
  if (grounded) {
    context.fillStyle = "rgba(18, 22, 30, 0.72)";
    context.beginPath();
    context.roundRect(0, 0, width, canvasHeight, canvasHeight / 2);
    context.fill();
  }
  context.fillStyle = "#f4f6fa";
  context.textBaseline = "middle";
  context.fillText(shown, margin, canvasHeight / 2 + 2, width - 2 * margin);
  const map = new CanvasTexture(canvas);
  map.colorSpace = SRGBColorSpace;
  map.minFilter = LinearFilter;
  return { map, ratio: width / canvasHeight };
}

/** Cuts text until it fits. */
export function shortened(text: string, fits: (text: string) => boolean): string {
  let shown = text;
  for (let length = text.length; !fits(shown) && length > 1; length = Math.floor(length * 0.9)) {
    shown = `${text.slice(0, length - 1)}…`;
  }
  return shown;
}
