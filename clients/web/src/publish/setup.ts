// The form for publishing, with missing requirements and advice.

import { h } from "../dom";
import { cameras, lacksDevices } from "./camera";
import type { Arrangement, DepthCoding } from "./depth";
import { standardQualities, tileCounts } from "./tiling";
import { type Kind, pointChoices, rateChoices, type Wishes } from "./wishes";
import { lacksXR } from "./xr";

const kinds: readonly [Kind, string, string][] = [
  ["figure", "A figure", "Somebody who moves, made up by your computer. Needs no camera."],
  ["camera", "A depth camera", "Points from a camera whose picture shows depth beside colour."],
  ["xr", "Depth of this phone", "Points of what your phone sees around you (WebXR)."],
];

const arrangements: readonly [Arrangement, string][] = [
  ["depth-left", "depth left, colour right"], ["depth-right", "colour left, depth right"], ["depth-top", "depth above colour"],
  ["depth-bottom", "colour above depth"], ["depth-only", "depth alone"],
];
const codings: readonly [DepthCoding, string][] = [["near-bright", "near is bright"], ["far-bright", "far is bright"], ["hue", "hues, near is red"]];

type Options = readonly (readonly [string | number, string])[];

export class Setup {
  readonly element: HTMLFormElement;
  private readonly problem = h("p", { class: "problem", hidden: true });
  private readonly radios = new Map<Kind, HTMLInputElement>();
  private readonly notes = new Map<Kind, HTMLElement>();
  private readonly lens: HTMLElement;
  private readonly fields: Record<"points" | "fps" | "tiles" | "arrangement" | "coding" | "near" | "far" | "fov" | "height", HTMLSelectElement | HTMLInputElement>;
  private readonly qualities = new Map<string, HTMLInputElement>();
  private readonly device = h("select", {}, h("option", { value: "" }, "any camera"));
  private readonly speak = h("input", { type: "checkbox" });

  constructor(wishes: Wishes, start: () => void) {
    const points: Options = withChoice(pointChoices, wishes.points).map((n) => [n, n.toLocaleString("en")]);
    const { lens } = wishes;
    this.fields = {
      points: select(points, wishes.points),
      fps: select(withChoice(rateChoices, wishes.fps).map((n) => [n, String(n)]), wishes.fps),
      tiles: select(tileCounts.map((n) => [n, n === 1 ? "1, whole" : String(n)]), wishes.tiles),
      arrangement: select(arrangements, lens.arrangement),
      coding: select(codings, lens.coding),
      near: number(lens.near, 0.1),
      far: number(lens.far, 0.1),
      fov: number(lens.fov, 1),
      height: number(lens.height, 0.1),
    };
    this.lens = this.lensFields();
    this.element = h(
      "form", { class: "setup" }, this.kinds(wishes.kind), this.lens, this.more(wishes),
      h("label", { class: "check" }, this.speak, "Speak, too"), this.problem, h("button", { type: "submit", class: "primary" }, "Show yourself"),
    );
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      start();
    });
    this.element.addEventListener("change", () => this.choose());
    this.choose();
  }

  private kinds(chosen: Kind): HTMLElement {
    return h("fieldset", { class: "kinds" }, h("legend", {}, "With what?"), ...kinds.map(([kind, title, text]) => {
      const radio = h("input", { type: "radio", name: "kind", value: kind, checked: kind === chosen });
      const note = h("span", { class: "note" });
      this.radios.set(kind, radio);
      this.notes.set(kind, note);
      return h("label", { class: "kind" }, radio, h("span", {}, h("strong", {}, title), h("span", { class: "about" }, text), note));
    }));
  }

  private lensFields(): HTMLElement {
    const { arrangement, coding, near, far, fov, height } = this.fields;
    return h(
      "div", { class: "fields" }, labelled("Camera", this.device), labelled("Picture", arrangement), labelled("Depth", coding),
      labelled("Nearest, m", near), labelled("Farthest, m", far), labelled("Angle of view, °", fov), labelled("Camera's height, m", height),
    );
  }

  private more(wishes: Wishes): HTMLElement {
    const { points, fps, tiles } = this.fields;
    const boxes = standardQualities.map(({ name, share, bits }) => {
      const box = h("input", { type: "checkbox", checked: wishes.qualities.includes(name) });
      this.qualities.set(name, box);
      return h("label", { class: "check", title: `${100 * share} % of the points, ${bits} bits` }, box, name);
    });
    return h(
      "details", {}, h("summary", {}, "How much"),
      h("div", { class: "fields" }, labelled("Points", points), labelled("Frames per second", fps), labelled("Tiles", tiles)),
      h("fieldset", { class: "checks" }, h("legend", {}, "Qualities"), ...boxes),
    );
  }

  private get kind(): Kind {
    return [...this.radios].find(([, radio]) => radio.checked)?.[0] ?? "figure";
  }

  private choose(): void {
    this.lens.hidden = this.kind !== "camera";
  }

  /** The choices of the user. */
  get wishes(): Wishes {
    const f = this.fields;
    const near = Math.max(Number(f.near.value), 0.05);
    const names = [...this.qualities].filter(([, box]) => box.checked).map(([name]) => name);
    return {
      kind: this.kind, points: Number(f.points.value), fps: Number(f.fps.value), tiles: Number(f.tiles.value),
      qualities: names.length > 0 ? names : standardQualities.map((q) => q.name),
      lens: {
        arrangement: f.arrangement.value as Arrangement, coding: f.coding.value as DepthCoding, near, far: Math.max(Number(f.far.value), near + 0.1),
        fov: Math.min(Math.max(Number(f.fov.value), 5), 150), height: Number(f.height.value),
      },
    };
  }

  get camera(): string {
    return this.device.value;
  }

  get speaks(): boolean {
    return this.speak.checked;
  }

  /** Checks which sources are available, and shows the missing requirements. */
  async look(): Promise<void> {
    const devices = lacksDevices();
    const found = devices ? [] : await cameras();
    this.note("camera", devices ?? (found.length === 0 ? "There is no camera: connect one, then open this again." : ""));
    this.note("xr", (await lacksXR()) ?? "");
    const chosen = this.device.value;
    this.device.replaceChildren(h("option", { value: "" }, "any camera"), ...found.filter((d) => d.deviceId).map((d, i) => h("option", { value: d.deviceId }, d.label || `camera ${i + 1}`)));
    this.device.value = chosen;
    this.speak.disabled = devices !== undefined;
    this.speak.parentElement!.title = devices ?? "Your microphone, as sound that comes from where you are";
  }

  private note(kind: Kind, missing: string): void {
    this.notes.get(kind)!.textContent = missing;
    const radio = this.radios.get(kind)!;
    radio.disabled = missing !== "";
    if (radio.disabled && radio.checked) {
      this.radios.get("figure")!.checked = true;
      this.choose();
    }
  }

  trouble(message: string): void {
    this.problem.textContent = message;
    this.problem.hidden = message === "";
  }

  focus(): void {
    this.radios.get(this.kind)!.focus();
  }
}

function withChoice(choices: readonly number[], chosen: number): number[] {
  return choices.includes(chosen) ? [...choices] : [...choices, chosen].sort((a, b) => a - b);
}

function select(options: Options, chosen: string | number): HTMLSelectElement {
  return h("select", {}, ...options.map(([value, text]) => h("option", { value: String(value), selected: value === chosen }, text)));
}

function number(value: number, step: number): HTMLInputElement {
  return h("input", { type: "number", value: String(value), step: String(step), min: "0", required: true });
}

function labelled(text: string, field: HTMLElement): HTMLElement {
  return h("label", {}, text, field);
}
