// The element <volsfu-room>: a room in space, drawn by three.js.

import { h } from "../dom";
import { isPicture } from "../media/picture";
import { type Frame, join, type Room } from "../client/room";
import type { JoinOptions } from "../client/options";
import { Gaze } from "../scene/gaze";
import { World } from "../scene/world";
import { Sound } from "../viewer/sound";
import { type RoomElementEvents, statisticsInterval } from "./events";
import { style } from "./style";

export type { RoomElementEvents } from "./events";

const attributes = ["url", "room", "identity", "token", "encryption-key", "publish", "assets"] as const;
type Attribute = (typeof attributes)[number];

/** What the element shows: the room in the world, from the connection to the document until the end. */
class Show {
  room: Room | undefined;
  readonly sound = new Sound();
  private readonly world: World;
  private readonly gaze: Gaze;
  /** The newest frame of each tile since the last picture. */
  private readonly fresh = new Map<string, Frame>();
  private readonly over = new AbortController();
  private timer: ReturnType<typeof setInterval> | undefined;
  private why = "";

  constructor(
    canvas: HTMLCanvasElement,
    options: JoinOptions,
    private readonly publish: string,
    private readonly tell: <K extends keyof RoomElementEvents>(event: K, detail: RoomElementEvents[K]) => void,
  ) {
    this.world = new World(canvas, () => this.draw(), (now) => this.room?.state === "joined" && this.gaze.step(now));
    this.gaze = new Gaze(this.world, { look: (viewpoint) => this.room?.look(viewpoint), arrange: (objects) => this.room?.arrange(objects) ?? false });
    void this.start(options);
  }

  private async start(options: JoinOptions): Promise<void> {
    const { objects } = this.world;
    try {
      this.room = await join({
        ...options,
        signal: this.over.signal,
        rasters: true,
        on: {
          published: (participant, publication) => {
            objects.add(participant, publication);
            this.refresh(isPicture(publication));
          },
          unpublished: (participant, publication) => {
            objects.remove(participant, publication);
            this.refresh(true);
          },
          frame: (frame) => this.arrived(frame),
          cleared: (tile) => objects.clear(tile),
          picture: (of, track) => objects.picture(of, track),
          pose: (pose) => objects.pose(pose),
          sound: ({ track }) => this.sound.add(track.id, track),
          participant: ({ identity, attributes: named }) => this.tell("participant", { identity, name: named?.["name"] || identity, present: true }),
          left: (identity) => this.tell("participant", { identity, name: identity, present: false }),
          problem: (message) => this.tell("error", { message }),
          state: (state, why) => {
            if (state === "closed") {
              this.why = why;
              this.end();
            }
          },
        },
      });
    } catch (error) {
      if (!this.over.signal.aborted) {
        this.tell("error", { message: error instanceof Error ? error.message : String(error) });
      }
      return;
    }
    const { room } = this;
    this.tell("joined", { room: room.name, identity: room.identity });
    this.timer = setInterval(() => void room.statistics().then((statistics) => room.state !== "closed" && this.tell("statistics", statistics)), statisticsInterval);
    if (this.publish === "figure") {
      const { ended } = await room.publishFigure();
      void ended.then((message) => message !== "" && this.tell("error", { message }));
    }
  }

  /** Moves the viewer's seat, which depends on the number of participants, until the viewer has moved. */
  private refresh(panels: boolean): void {
    if (!this.gaze.begun || (panels && this.world.atHome)) {
      this.world.home();
    }
  }

  private arrived(frame: Frame): void {
    const key = `${frame.participant}\n${frame.publication}\n${frame.tile}`;
    this.fresh.get(key)?.release();
    this.fresh.set(key, frame);
  }

  private draw(): void {
    for (const frame of this.fresh.values()) {
      this.world.objects.show(frame, frame.points, frame.quality, frame.raster);
      if (frame.raster) {
        // The tile closes the image after its upload.
        frame.raster.colors = undefined;
      }
      frame.release();
    }
    this.fresh.clear();
    const lines = this.room?.soundLines ?? [];
    this.sound.follow(this.world, lines.flatMap(({ track, participant }) => (participant === undefined ? [] : [{ mid: track.id, participant }])));
  }

  home(): void {
    this.world.home();
  }

  private end(): void {
    clearInterval(this.timer);
    this.fresh.clear();
    if (this.room) {
      this.room = undefined;
      this.tell("left", { why: this.why === "left" ? "" : this.why });
    }
  }

  close(): void {
    this.over.abort();
    this.room?.leave();
    this.sound.close();
    this.world.close();
  }
}

export class VolsfuRoomElement extends HTMLElement {
  static readonly observedAttributes = attributes;

  private show: Show | undefined;
  private changing = false;
  private readonly message = h("p", { role: "status", hidden: true });
  private readonly soundButton = h("button", { type: "button", ariaPressed: "false" }, "Sound");
  private canvas: HTMLCanvasElement | undefined;

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    this.soundButton.part.add("sound");
    this.message.part.add("message");
    root.append(h("style", {}, style), this.message, this.soundButton);
    this.soundButton.addEventListener("click", () => void this.toggleSound());
  }

  /** The joined room; undefined before and after. */
  get session(): Room | undefined {
    return this.show?.room;
  }

  connectedCallback(): void {
    this.change();
  }

  disconnectedCallback(): void {
    this.change();
  }

  attributeChangedCallback(_name: string, before: string | null, after: string | null): void {
    if (before !== after) {
      this.change();
    }
  }

  /** Switches sound on or off, from the direction of the speakers. It must be called from a click or a key. */
  async toggleSound(): Promise<boolean> {
    const on = (await this.show?.sound.toggle()) ?? false;
    this.soundButton.ariaPressed = String(on);
    return on;
  }

  /** Returns to the viewer's seat. */
  home(): void {
    this.show?.home();
  }

  /** Enters the room of the attributes, after all changes of the present task. */
  private change(): void {
    if (this.changing) {
      return;
    }
    this.changing = true;
    queueMicrotask(() => {
      this.changing = false;
      this.close();
      if (this.isConnected && this.getAttribute("url")) {
        this.open();
      }
    });
  }

  private open(): void {
    const value = (name: Attribute): string => this.getAttribute(name) ?? "";
    const given = (option: "room" | "identity" | "token" | "key" | "assets", text: string): Partial<JoinOptions> => (text ? { [option]: text } : {});
    this.say("");
    // A canvas whose context was lost cannot be used again.
    this.canvas = h("canvas", { tabIndex: 0, ariaLabel: "A room in space. Drag to orbit; W A S D to walk, arrow keys to turn." });
    this.shadowRoot!.prepend(this.canvas);
    try {
      const options: JoinOptions = {
        url: value("url"), ...given("room", value("room")), ...given("identity", value("identity")), ...given("token", value("token")), ...given("key", value("encryption-key")), ...given("assets", value("assets")),
      };
      this.show = new Show(this.canvas, options, value("publish"), (event, detail) => this.tell(event, detail));
    } catch {
      this.tell("error", { message: "This browser has no WebGL 2, or it is switched off." });
    }
  }

  private close(): void {
    this.show?.close();
    this.show = undefined;
    this.canvas?.remove();
    this.canvas = undefined;
    this.soundButton.ariaPressed = "false";
  }

  private tell<K extends keyof RoomElementEvents>(event: K, detail: RoomElementEvents[K]): void {
    if (event === "error") {
      this.say((detail as RoomElementEvents["error"]).message);
    }
    if (event === "left") {
      this.say((detail as RoomElementEvents["left"]).why);
    }
    this.dispatchEvent(new CustomEvent(event, { detail, bubbles: true, composed: true }));
  }

  private say(message: string): void {
    this.message.textContent = message;
    this.message.hidden = message === "";
  }
}

declare global {
  interface HTMLElementTagNameMap {
    "volsfu-room": VolsfuRoomElement;
  }
}

if (!customElements.get("volsfu-room")) {
  customElements.define("volsfu-room", VolsfuRoomElement);
}
