// The part of the panel for webcam and screen: a button and a card for each, and their settings.

import { bitrate, h } from "../../dom";
import { morph } from "../../morph";
import type { Conference } from "../../viewer/conference";
import { cameras, Lacking, lacksDevices } from "../camera";
import { StatusLine } from "../statusline";
import { screenSound, Voice } from "../voice";
import { lacksScreen, type Opened, openVideo } from "./capture";
import type { VideoCodec, VideoKind } from "./plan";
import { hasCodec, VideoPublication } from "./publication";
import { lineChoices, type VideoWishes } from "./wishes";

const refreshInterval = 500;

const words: Record<VideoKind, { start: string; stop: string; title: string }> = {
  webcam: { start: "Webcam", stop: "Stop webcam", title: "Your webcam" },
  screen: { start: "Share screen", stop: "Stop sharing", title: "Your screen" },
};

export const noEncryption = "This page has a key, and webcams and screens cannot be encrypted. To show them, enter the room without a key.";

/** A webcam or a screen that is published. */
interface Live {
  publication: VideoPublication;
  sound: Voice | undefined;
  card: Card;
}

export class VideoSection {
  readonly element: HTMLElement;
  private readonly buttons = new Map<VideoKind, HTMLButtonElement>();
  private readonly live = new Map<VideoKind, Live>();
  /** The devices that are being opened. Aborting closes them. */
  private readonly opening = new Map<VideoKind, AbortController>();
  private readonly problem = h("p", { class: "problem", hidden: true, role: "alert" });
  private readonly cards = h("div", { class: "cards" });
  private readonly device = h("select", {}, h("option", { value: "" }, "any camera"));
  private readonly lines: HTMLSelectElement;
  private readonly codec: HTMLSelectElement;
  private timer: ReturnType<typeof setInterval> | undefined;

  /** @param changed is called when a webcam or a screen has begun or ended */
  constructor(
    private readonly conference: Conference,
    wishes: VideoWishes,
    private readonly say: (message: string) => void,
    private readonly changed: () => void,
  ) {
    const option = (value: string, text: string, selected: boolean): HTMLOptionElement => h("option", { value, selected }, text);
    this.lines = h("select", {}, ...lineChoices.map((n) => option(String(n), `${n} lines`, n === wishes.lines)));
    this.codec = h("select", {}, ...(["VP8", "H264"] as const).map((c) => option(c, c, c === wishes.codec)));
    for (const kind of ["webcam", "screen"] as const) {
      const button = h("button", { type: "button", class: "share", ariaPressed: "false" }, words[kind].start);
      button.addEventListener("click", () => void this.toggle(kind));
      this.buttons.set(kind, button);
    }
    this.element = h(
      "section", { class: "videos", ariaLabel: "Webcam and screen" },
      h("div", { class: "shares" }, ...this.buttons.values()), this.problem, this.cards,
      h(
        "details", {}, h("summary", {}, "Webcam settings"),
        h("div", { class: "fields" }, h("label", {}, "Camera", this.device), h("label", {}, "Picture", this.lines), h("label", {}, "Codec", this.codec)),
      ),
    );
    this.allow();
  }

  /** Shows the missing requirements on the buttons. */
  private allow(): void {
    for (const [kind, button] of this.buttons) {
      const missing = this.conference.encryption ? noEncryption : kind === "screen" ? lacksScreen() : lacksDevices();
      button.disabled = missing !== undefined;
      button.title = missing ?? (kind === "screen" ? "Others see the screen, window or tab that you choose" : "Others see your webcam on a panel");
      if (missing && this.live.size === 0) {
        this.trouble(missing);
      }
    }
  }

  /** Lists the cameras. */
  async look(): Promise<void> {
    const found = lacksDevices() ? [] : await cameras();
    const chosen = this.device.value;
    this.device.replaceChildren(h("option", { value: "" }, "any camera"), ...found.filter((d) => d.deviceId).map((d, i) => h("option", { value: d.deviceId }, d.label || `camera ${i + 1}`)));
    this.device.value = chosen;
  }

  get active(): boolean {
    return this.live.size > 0;
  }

  /** Returns the publication of a kind; undefined if it is not published. */
  publication(kind: VideoKind): VideoPublication | undefined {
    return this.live.get(kind)?.publication;
  }

  private async toggle(kind: VideoKind): Promise<void> {
    if (this.live.has(kind) || this.opening.has(kind)) {
      this.stop(kind);
    } else {
      await this.start(kind);
    }
  }

  /** Opens a webcam or a screen, and publishes it. */
  async start(kind: VideoKind): Promise<void> {
    if (this.live.has(kind) || this.opening.has(kind)) {
      return;
    }
    const opening = new AbortController();
    this.opening.set(kind, opening);
    this.trouble("");
    this.refresh();
    try {
      if (this.conference.encryption) {
        throw new Lacking(noEncryption);
      }
      const codec = this.codec.value === "H264" ? "H264" : "VP8";
      if (!hasCodec(codec)) {
        throw new Lacking(`This browser does not encode ${codec}. Choose another codec in the settings.`);
      }
      this.publish(kind, codec, await openVideo(kind, { camera: this.device.value, lines: Number(this.lines.value) }, opening.signal));
    } catch (error) {
      // A user who stopped the opening needs no message.
      if (!opening.signal.aborted) {
        this.trouble(error instanceof Lacking ? error.message : `The ${kind} cannot be published: ${error instanceof Error ? error.message : String(error)}`);
      }
    } finally {
      if (this.opening.get(kind) === opening) {
        this.opening.delete(kind);
      }
      this.refresh();
    }
  }

  private publish(kind: VideoKind, codec: VideoCodec, opened: Opened): void {
    const publication = new VideoPublication(this.conference, kind, codec, opened, (why) => {
      this.stop(kind);
      this.trouble(why);
    }, this.say);
    // The sound ends with the screen, or before it.
    const sound = opened.sound && new Voice(this.conference, opened.sound, () => this.hush(kind), screenSound);
    const card = new Card(words[kind].title, opened.track, kind === "webcam");
    this.live.set(kind, { publication, sound, card });
    this.cards.append(card.element);
    this.timer ??= setInterval(() => this.refresh(), refreshInterval);
    this.changed();
    void this.look();
  }

  private hush(kind: VideoKind): void {
    const live = this.live.get(kind);
    live?.sound?.end();
    if (live) {
      live.sound = undefined;
    }
  }

  /** Ends a webcam or a screen, or its opening. */
  stop(kind: VideoKind): void {
    this.opening.get(kind)?.abort();
    this.opening.delete(kind);
    this.hush(kind);
    const live = this.live.get(kind);
    this.live.delete(kind);
    live?.publication.end();
    live?.card.close();
    if (this.live.size === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
    }
    this.refresh();
    if (live) {
      this.changed();
    }
  }

  close(): void {
    this.stop("webcam");
    this.stop("screen");
  }

  private refresh(): void {
    for (const [kind, button] of this.buttons) {
      const { start, stop } = words[kind];
      const text = this.live.has(kind) ? stop : this.opening.has(kind) ? "Cancel" : start;
      if (button.textContent !== text) {
        button.textContent = text;
      }
      button.ariaPressed = String(this.live.has(kind));
    }
    for (const { publication, sound, card } of this.live.values()) {
      card.show(publication, sound !== undefined);
    }
  }

  private trouble(message: string): void {
    this.problem.textContent = message;
    this.problem.hidden = message === "";
  }
}

/** The preview and the state of a published webcam or screen. */
class Card {
  readonly element: HTMLElement;
  private readonly preview = h("video", { muted: true, autoplay: true, playsInline: true });
  private readonly headline = new StatusLine();
  private readonly rows = h("tbody");
  private readonly sentence = h("p", { class: "sentence" });

  /** @param mirrored shows the picture as a mirror does; others see it as it is */
  constructor(title: string, track: MediaStreamTrack, mirrored: boolean) {
    this.preview.srcObject = new MediaStream([track]);
    this.preview.ariaLabel = `${title}, as others see it`;
    this.preview.classList.toggle("mirrored", mirrored);
    const head = h("tr", {}, ...["Quality", "Taken", "Pixels", "fps", "Rate"].map((c) => h("th", { scope: "col" }, c)));
    this.element = h(
      "div", { class: "video" }, this.preview, this.headline.element,
      h("div", { class: "scroll" }, h("table", {}, h("thead", {}, head), this.rows)), this.sentence,
    );
  }

  show(publication: VideoPublication, sound: boolean): void {
    const states = publication.state();
    const bps = states.reduce((sum, s) => sum + s.bps, 0);
    const title = publication.kind === "webcam" ? "Webcam" : sound ? "Screen with sound" : "Screen";
    const sends = publication.live && bps > 0;
    this.headline.show(`${title}: ${sends ? "live" : publication.live ? "no receivers, nothing is sent" : "connecting …"}`, sends ? `, ${bitrate(bps)}` : "", sends);
    morph(this.rows, states.map(({ encoding, wanted, width, height, fps, bps: rate }) => {
      const sending = rate > 0;
      const cells = [
        encoding.name, wanted ? "yes" : "no", sending && width > 0 ? `${width} × ${height}` : `${encoding.width} × ${encoding.height}`, sending ? fps.toFixed(0) : "–", sending ? bitrate(rate) : "–",
      ];
      return h("tr", { class: sending ? "sending" : "resting" }, ...cells.map((c) => h("td", {}, c)));
    }));
    const { qualities, cause } = publication.budget;
    const given = publication.encodings.slice(qualities).map((e) => e.name).join(" and ");
    this.sentence.textContent = given === "" ? "" : `${cause === "cpu" ? "This computer" : "Your uplink"} is too slow for ${given}. More is tried periodically.`;
  }

  close(): void {
    this.preview.srcObject = null;
    this.element.remove();
  }
}
