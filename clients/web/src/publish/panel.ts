// The panel for publishing: choice of the source, settings, and state.

import "./panel.css";
import { h } from "../dom";
import type { Conference } from "../viewer/conference";
import { transforms } from "../media/connection";
import { soundAdvice } from "../viewer/secrecy";
import { DepthCamera, Lacking } from "./camera";
import type { Picture } from "./depth";
import { linkOf } from "./link";
import { LivePanel } from "./live";
import { unlessAborted } from "./opening";
import { Publisher, startCrew } from "./publisher";
import { Setup } from "./setup";
import { VideoSection } from "./video/section";
import type { VideoWishes } from "./video/wishes";
import { openMicrophone, Voice } from "./voice";
import { planOf, type Wishes } from "./wishes";
import { DepthOfXR } from "./xr";

/** The publication of a figure, a camera or a phone. */
const publication = "body";

/** The size of the mirror in pixels: sharp on screens with two device pixels per CSS pixel. */
const mirrorSize = { width: 480, height: 560 };

/** A source of depth pictures. */
interface Pictures {
  picture(): Promise<Picture | undefined>;
  close(): void;
}

export class Panel {
  readonly element: HTMLElement;
  private readonly setup: Setup;
  private readonly live: LivePanel;
  /** The webcam and the screen, which are published beside a figure or alone. */
  readonly videos: VideoSection;
  private publisher: Publisher | undefined;
  private voice: Voice | undefined;
  private pictures: Pictures | undefined;
  private timer: ReturnType<typeof setInterval> | undefined;
  /** Aborting closes the devices that are being opened. */
  private starting: AbortController | undefined;

  constructor(
    private readonly conference: Conference,
    private readonly wishes: { points: Wishes; video: VideoWishes },
    private readonly say: (message: string) => void,
    private readonly changed: (live: boolean) => void,
  ) {
    this.setup = new Setup(wishes.points, () => void this.start());
    this.videos = new VideoSection(conference, wishes.video, say, () => this.changed(this.publishing));
    const stop = (): void => {
      this.stop();
      // The pressed button was removed: the keyboard focus moves next to it.
      this.setup.focus();
    };
    this.live = new LivePanel({ stop, mute: () => this.mute() });
    const close = h("button", { type: "button", class: "close", ariaLabel: "Close", title: "Close" }, "×");
    close.addEventListener("click", () => this.toggle());
    this.element = h(
      "aside", { class: "self", hidden: true, ariaLabel: "Show yourself" },
      h("header", {}, h("h2", {}, "Show yourself"), close), this.videos.element, h("h3", {}, "In three dimensions"), this.setup.element, this.live.element,
    );
    this.live.element.hidden = true;
  }

  /** Shows or hides the panel. The publication continues. */
  toggle(): boolean {
    this.element.hidden = !this.element.hidden;
    if (!this.element.hidden) {
      void this.setup.look();
      void this.videos.look();
      this.setup.focus();
    }
    this.changed(this.publishing);
    return !this.element.hidden;
  }

  private get publishing(): boolean {
    return this.publisher !== undefined || this.videos.active;
  }

  /** Starts the sources that the link asks for. */
  async begin(): Promise<void> {
    const { video } = this.wishes;
    await Promise.all([video.webcam ? this.videos.start("webcam") : undefined, video.alone ? undefined : this.start()]);
  }

  /** Ends everything that is published. */
  close(): void {
    this.stop();
    this.videos.close();
  }

  /** Starts publishing with the user's choices. */
  async start(): Promise<void> {
    if (this.publisher || this.starting) {
      return;
    }
    const starting = new AbortController();
    this.starting = starting;
    this.setup.trouble("");
    try {
      const wishes = this.setup.wishes;
      const aspect = await this.open(wishes, starting.signal);
      if (this.setup.speaks) {
        if (this.conference.encryption && !transforms()) {
          throw new Lacking(`This browser cannot encrypt sound. ${soundAdvice} Use another browser, or publish without the microphone.`);
        }
        const track = await unlessAborted(starting.signal, openMicrophone(), (opened) => opened.stop());
        this.voice = new Voice(this.conference, track, (why) => this.silence(why));
      }
      this.publish(wishes, aspect);
      this.starting = undefined;
    } catch (error) {
      // A user who aborted the opening needs no message.
      if (!starting.signal.aborted) {
        this.setup.trouble(error instanceof Lacking ? error.message : `Publishing failed: ${error instanceof Error ? error.message : String(error)}`);
        this.stop();
      }
    }
  }

  /** Opens the source of pictures; a figure needs none. Returns the aspect ratio of a picture. */
  private async open(wishes: Wishes, signal: AbortSignal): Promise<number> {
    const close = (opened: Pictures): void => opened.close();
    if (wishes.kind === "camera") {
      const camera = await unlessAborted(signal, DepthCamera.open(this.setup.camera, wishes.fps), close);
      camera.ended = () => this.pictures === camera && this.lost("The camera was disconnected.");
      this.pictures = camera;
      return camera.aspect;
    }
    if (wishes.kind === "xr") {
      const phone = await unlessAborted(signal, DepthOfXR.open(this.element), close);
      // Headsets also report an end that was requested, possibly after something else has started.
      phone.ended = () => this.pictures === phone && this.stop();
      this.pictures = phone;
    }
    return 1;
  }

  private publish(wishes: Wishes, aspect: number): void {
    const plan = planOf(wishes, this.conference.identity, aspect);
    const mirror = this.live.mirror(mirrorSize);
    this.publisher = new Publisher(linkOf(this.conference), publication, plan, startCrew(plan.tiles, plan.codec), mirror, {
      refused: (message) => this.lost(message),
      trouble: (message) => this.say(message),
      picture: () => this.pictures?.picture() ?? Promise.resolve(undefined),
    });
    this.conference.publish(this.publisher);
    this.setup.element.hidden = true;
    this.live.element.hidden = false;
    this.live.focus();
    this.changed(this.publishing);
    this.refresh();
    this.timer = setInterval(() => this.refresh(), 500);
  }

  private refresh(): void {
    if (this.publisher) {
      const others = [...this.conference.participants.keys()].filter((who) => who !== this.conference.identity);
      this.live.show(this.publisher.state(), this.publisher.plan, others, this.voice && { on: this.voice.on });
    }
  }

  /** The publication ended unexpectedly: the panel shows the reason. */
  private lost(message: string): void {
    this.stop();
    this.setup.trouble(message);
    this.element.hidden = false;
  }

  /** The microphone was lost; the other publications continue. */
  private silence(why: string): void {
    this.say(why);
    this.voice?.end();
    this.voice = undefined;
    this.refresh();
  }

  private mute(): void {
    if (this.voice) {
      this.voice.on = !this.voice.on;
      this.refresh();
    }
  }

  /** Ends the publication, and aborts the opening of devices. */
  stop(): void {
    this.starting?.abort();
    this.starting = undefined;
    clearInterval(this.timer);
    if (this.publisher) {
      this.conference.unpublish(this.publisher);
      this.publisher.end();
      this.publisher = undefined;
    }
    this.voice?.end();
    this.voice = undefined;
    const { pictures } = this;
    this.pictures = undefined;
    pictures?.close();
    this.live.element.hidden = true;
    this.setup.element.hidden = false;
    this.changed(this.publishing);
  }
}
