// Text in space, drawn on small canvases.

import { CanvasTexture, Group, LinearFilter, Sprite, SpriteMaterial, SRGBColorSpace } from "three";

const font = "600 44px system-ui, sans-serif";
const canvasHeight = 76;
const margin = 24;
/** The greatest width of the text in pixels; longer text is narrowed, and cut at twice this width. */
const mostWidth = 640;

/** The height of a nameplate, and the distance of its middle above a head, in metres. */
const plateHeight = 0.085;
const above = 0.1;
/** Names are as large as at this distance if the eye is nearer, and fade out between the other two, in metres. */
const constantWithin = 1.4;
const fadesFrom = 5;
const gone = 11;
/** The time constant with which the mark of a speaker fades, in seconds. */
const lingering = 0.25;

/** A name above a person, which faces the viewer. A coloured rim around it shows that the person speaks. */
export class Nameplate {
  /** The origin is the top of the person. */
  readonly object = new Group();
  private readonly name: Sprite;
  private readonly rim: Sprite;
  private readonly ratio: number;
  private level = 0;

  constructor(name: string) {
    const { map, ratio } = textTexture(name, true);
    const ground = textTexture(name, true, "#3ddc84");
    this.ratio = ratio;
    this.name = new Sprite(new SpriteMaterial({ map, depthTest: false, transparent: true, toneMapped: false }));
    this.rim = new Sprite(new SpriteMaterial({ map: ground.map, depthTest: false, transparent: true, toneMapped: false }));
    this.rim.renderOrder = 1;
    this.name.renderOrder = 2;
    this.object.add(this.rim, this.name);
    this.step(0, 1);
  }

  /** Sets how loud the person speaks, 0 to 1. */
  speak(level: number): void {
    this.level = Math.max(this.level, Math.min(level, 1));
  }

  /** Advances by the given seconds, at a distance from the eye in metres. */
  step(seconds: number, distance: number): void {
    const opacity = Math.min(Math.max((gone - distance) / (gone - fadesFrom), 0), 1);
    const height = plateHeight * Math.min(1, distance / constantWithin);
    this.level *= Math.exp(-seconds / lingering);
    this.name.scale.set(height * this.ratio, height, 1);
    const rim = height * (0.12 + 0.2 * this.level);
    this.rim.scale.set(height * this.ratio + rim, height + rim, 1);
    this.name.position.y = this.rim.position.y = above;
    this.name.material.opacity = opacity;
    this.rim.material.opacity = opacity * Math.min(1, 4 * this.level);
    this.rim.visible = this.level > 0.02;
    this.object.visible = opacity > 0;
  }

  dispose(): void {
    for (const { material } of [this.name, this.rim]) {
      material.map?.dispose();
      material.dispose();
    }
  }
}

/** Draws light text, on a rounded ground if requested, which is dark unless stated. Returns the texture with its ratio, width over height. */
export function textTexture(text: string, grounded: boolean, ground = "rgba(18, 22, 30, 0.72)"): { map: CanvasTexture; ratio: number } {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d")!;
  context.font = font;
  const shown = shortened(text, (t) => context.measureText(t).width <= 2 * mostWidth);
  const width = Math.ceil(Math.min(context.measureText(shown).width, mostWidth)) + 2 * margin;
  canvas.width = width;
  canvas.height = canvasHeight;
  context.font = font;
  if (grounded) {
    context.fillStyle = ground;
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
