// The view for the publishing user: the picture that others see, the data sent, and the receivers.

import { bitrate, h, milliseconds } from "../dom";
import { morph } from "../morph";
import type { State } from "./figures";
import { StatusLine } from "./statusline";
import type { Plan } from "./traffic";

export interface LiveActs {
  stop(): void;
  mute(): void;
}

const columns = ["Quality", "Taken", "fps", "Rate", "Points", "Encode"];

export class LivePanel {
  readonly element: HTMLElement;
  private readonly frame = h("div", { class: "mirror" });
  private readonly headline = new StatusLine();
  private readonly body = h("tbody");
  private readonly sentences = h("div", { class: "sentences" });
  private readonly stop = h("button", { type: "button", class: "primary" }, "Stop");
  private readonly mute = h("button", { type: "button", class: "quiet" });

  constructor(acts: LiveActs) {
    this.stop.addEventListener("click", () => acts.stop());
    this.mute.addEventListener("click", () => acts.mute());
    const head = h("tr", {}, ...columns.map((c) => h("th", { scope: "col" }, c)));
    this.element = h(
      "div", { class: "live" }, this.frame, this.headline.element, h("div", { class: "scroll" }, h("table", {}, h("thead", {}, head), this.body)), this.sentences,
      h("div", { class: "acts" }, this.stop, this.mute),
    );
  }

  /**
   * Makes a new mirror for a worker to draw; returns undefined if the browser lacks such a canvas.
   */
  mirror(size: { width: number; height: number }): OffscreenCanvas | undefined {
    const canvas = h("canvas", { ...size, ariaLabel: "You, as others see you" });
    this.frame.replaceChildren(canvas);
    return "transferControlToOffscreen" in canvas ? canvas.transferControlToOffscreen() : undefined;
  }

  focus(): void {
    this.stop.focus();
  }

  show(state: State, plan: Plan, others: readonly string[], voice: { on: boolean } | undefined): void {
    const sends = state.live && state.bps > 0;
    this.headline.show(stateOf(state), sends ? `: ${bitrate(state.bps)}, ${state.fps.toFixed(0)} fps` : "", sends);
    morph(this.body, state.qualities.map((q) => {
      const sending = q.fps > 0;
      const cells = [
        q.name, plan.tiles === 1 ? (q.wanted ? "yes" : "no") : `${q.wanted} of ${plan.tiles}`, sending ? q.fps.toFixed(0) : "–", sending ? bitrate(q.bps) : "–",
        sending ? q.points.toLocaleString("en") : "–", sending ? milliseconds(q.milliseconds) : "–",
      ];
      return h("tr", { class: sending ? "sending" : "resting" }, ...cells.map((c) => h("td", {}, c)));
    }));
    morph(this.sentences, sentencesOf(state, plan, others).map((s) => h("p", {}, s)));
    this.mute.hidden = !voice;
    this.mute.textContent = voice?.on ? "Mute" : "Unmute";
  }
}

function stateOf(state: State): string {
  if (!state.ready) {
    return "Getting ready …";
  }
  if (!state.live) {
    return "Connecting …";
  }
  return state.bps > 0 ? "Live" : "Live: no receivers, nothing is sent";
}

/** Returns sentences about the other participants, their choices, and delays. */
export function sentencesOf(state: State, plan: Plan, others: readonly string[]): string[] {
  const all: string[] = [];
  const taken = state.qualities.filter((q) => q.wanted > 0).map((q) => q.name);
  if (others.length === 0) {
    all.push("Nobody else is here yet.");
  } else {
    const takes = taken.length > 0 ? ` Received qualities: ${list(taken)}.` : "";
    all.push(`${list(others)} ${others.length === 1 ? "is" : "are"} here.${takes}`);
  }
  if (state.givenUp.length > 0 || state.share < 1) {
    const carried = state.carried > 0 ? ` of ${bitrate(state.carried)}` : "";
    const reduced = plan.codec === "rgbd" ? "are coarser" : `have ${Math.round(100 * state.share)} % of their points`;
    const less = state.share < 1 ? `, and the others ${reduced}` : "";
    all.push(`Your uplink${carried} is too slow for ${state.givenUp.length > 0 ? list(state.givenUp) : "everything"}${less}. More is tried periodically.`);
  } else if (state.dropped > 0.5) {
    all.push(`The uplink is full: ${state.dropped.toFixed(0)} frames per second are replaced by newer ones.`);
  }
  if (state.skipped > 0.1 * plan.fps) {
    all.push(`This computer encodes too slowly for ${plan.fps} frames per second: ${state.skipped.toFixed(0)} are skipped. Choose ${plan.codec === "rgbd" ? "a lower rate" : "fewer points"}.`);
  }
  return all;
}

/** Formats a list of names, shortened if there are many. */
function list(names: readonly string[]): string {
  if (names.length > 4) {
    return `${names.slice(0, 3).join(", ")} and ${names.length - 3} others`;
  }
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
