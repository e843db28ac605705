// The element <volsfu-room>: a room in space, drawn by three.js.

import { h } from "../dom";
import { isPicture } from "../media/picture";
import { type Frame, join, type Room } from "../client/room";
import type { JoinOptions } from "../client/options";
import { Gaze } from "../scene/gaze";
import { graphicsLost, watchGraphics } from "../scene/graphics";
import { World } from "../scene/world";
import type { TileRef } from "../signal/messages";
import { Sound } from "../viewer/sound";
import { type RoomElementEvents, statisticsInterval } from "./events";
import { style } from "./style";

export type { RoomElementEvents } from "./events";

const attributes = ["url", "room", "identity", "token", "encryption-key", "publish", "assets"] as const;
type Attribute = (typeof attributes)[number];

/** The session of the element and its picture, from the connection to the document until the end. */
class Show {
  room: Room | undefined;
  readonly sound: Sound;
  private readonly world: World;
  private readonly gaze: Gaze;
  /** The newest frame of each tile since the last picture. */
  private readonly fresh = new Map<string, Frame>();
  /** The names of the participants that the page knows, by identity. */
  private readonly names = new Map<string, string>();
  /** Aborted when the element leaves the room. */
  readonly over = new AbortController();
  private timer: ReturnType<typeof setInterval> | undefined;
  private why = "";

  constructor(
    canvas: HTMLCanvasElement,
    options: JoinOptions,
    private readonly publish: string,
    private readonly tell: <K extends keyof RoomElementEvents>(event: K, detail: RoomElementEvents[K]) => void,
    sounds: (on: boolean) => void,
  ) {
    this.sound = new Sound(sounds);
    this.world = new World(canvas, () => this.draw(), (now) => this.room?.state === "joined" && this.gaze.step(now));
    this.gaze = new Gaze(this.world, { look: (viewpoint) => this.room?.look(viewpoint), arrange: (objects) => this.room?.arrange(objects) ?? false });
    void this.start(options);
  }

  private async start(options: JoinOptions): Promise<void> {
    const { objects } = this.world;
    let room: Room;
    try {
      room = await join({
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
          cleared: (tile) => {
            this.discard(tile);
            objects.clear(tile);
          },
          picture: (of, track) => objects.picture(of, track),
          pose: (pose) => objects.pose(pose),
          sound: ({ id, track }) => this.sound.add(id, track),
          soundEnded: (id) => this.sound.remove(id),
          moved: () => this.gaze.entered(),
          participant: ({ identity, attributes: named }) => this.present(identity, named?.["name"] || identity),
          left: (identity) => this.absent(identity),
          problem: (message) => this.tell("error", { message }),
          state: (state, why) => {
            if (state === "joined") {
              this.gaze.entered();
            }
            if (state === "closed") {
              this.why = why;
              this.end();
            }
          },
        },
      });
    } catch (error) {
      this.fail(error);
      return;
    }
    if (this.over.signal.aborted) {
      room.leave();
      return;
    }
    this.room = room;
    this.tell("joined", { room: room.name, identity: room.identity });
    this.timer = setInterval(() => void room.statistics().then((statistics) => room.state !== "closed" && this.tell("statistics", statistics)), statisticsInterval);
    if (this.publish === "figure") {
      await room.publishFigure().then(({ ended }) => ended).then((message) => message !== "" && this.tell("error", { message }), (error: unknown) => this.fail(error));
    }
  }

  /** Tells the page about a participant who has joined or has another name. */
  private present(identity: string, name: string): void {
    if (this.names.get(identity) !== name) {
      this.names.set(identity, name);
      this.tell("participant", { identity, name, present: true });
    }
  }

  private absent(identity: string): void {
    const name = this.names.get(identity) ?? identity;
    this.names.delete(identity);
    this.tell("participant", { identity, name, present: false });
  }

  /** Tells the page about an error, unless the element has left the room. */
  private fail(error: unknown): void {
    if (!this.over.signal.aborted) {
      this.tell("error", { message: error instanceof Error ? error.message : String(error) });
    }
  }

  /** Moves the viewer's seat, which depends on the number of participants, until the viewer has moved. */
  private refresh(panels: boolean): void {
    if (!this.gaze.begun || (panels && this.world.atHome)) {
      this.world.home();
    }
  }

  private arrived(frame: Frame): void {
    this.discard(frame);
    this.fresh.set(keyOf(frame), frame);
  }

  /** Releases the newest frame of a tile if it was not drawn. */
  private discard(tile: TileRef): void {
    this.fresh.get(keyOf(tile))?.release();
    this.fresh.delete(keyOf(tile));
  }

  private draw(): void {
    for (const frame of this.fresh.values()) {
      this.world.objects.show(frame, frame.points, frame.quality, frame.raster);
      frame.release();
    }
    this.fresh.clear();
    const lines = this.room?.soundLines ?? [];
    this.sound.follow(this.world, lines.flatMap(({ id, participant }) => (participant === undefined ? [] : [{ mid: id, participant }])));
  }

  home(): void {
    this.world.home();
  }

  private end(): void {
    clearInterval(this.timer);
    this.fresh.forEach((frame) => frame.release());
    this.fresh.clear();
    if (this.room) {
      // The last picture would look like people who do not move.
      for (const { identity, publications } of this.room.participants.values()) {
        publications.forEach(({ name }) => this.world.objects.remove(identity, name));
      }
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

function keyOf({ participant, publication, tile }: TileRef): string {
  return `${participant}\n${publication}\n${tile}`;
}

/** The element <volsfu-room>. Its attributes are settings of the session, and its events are RoomElementEvents. */
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
    this.soundButton.addEventListener("click", () => {
      this.toggleSound().catch((error: unknown) => this.tell("error", { message: `The sound cannot be played: ${error instanceof Error ? error.message : String(error)}` }));
    });
  }

  /** The joined room; undefined before and after. */
  get session(): Room | undefined {
    return this.show?.room;
  }

  connectedCallback(): void {
    addEventListener("pagehide", this.pageHidden);
    addEventListener("pageshow", this.pageShown);
    this.change();
  }

  disconnectedCallback(): void {
    removeEventListener("pagehide", this.pageHidden);
    removeEventListener("pageshow", this.pageShown);
    this.change();
  }

  /** The other participants need not wait for the grace period when the page is closed. */
  private readonly pageHidden = (): void => this.close();

  /** Enters the room again when the browser shows a page that it has kept. */
  private readonly pageShown = ({ persisted }: PageTransitionEvent): void => {
    if (persisted) {
      this.change();
    }
  };

  attributeChangedCallback(_name: string, before: string | null, after: string | null): void {
    if (before !== after) {
      this.change();
    }
  }

  /** Switches sound on or off, from the direction of the speakers. It must be called from a click or a key. */
  async toggleSound(): Promise<boolean> {
    const on = (await this.show?.sound.toggle()) ?? false;
    this.sounds(on);
    return on;
  }

  private sounds(on: boolean): void {
    this.soundButton.ariaPressed = String(on);
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
    this.canvas = h("canvas", { tabIndex: 0, role: "application", ariaLabel: "A room in space. Drag to orbit; W A S D to walk, arrow keys to turn." });
    this.shadowRoot!.prepend(this.canvas);
    try {
      const options: JoinOptions = {
        url: value("url"), ...given("room", value("room")), ...given("identity", value("identity")), ...given("token", value("token")), ...given("key", value("encryption-key")), ...given("assets", value("assets")),
      };
      this.show = new Show(this.canvas, options, value("publish"), (event, detail) => this.tell(event, detail), (on) => this.sounds(on));
      watchGraphics(this.canvas, this.show.over.signal, (lost) => (lost ? this.tell("error", { message: graphicsLost }) : this.say("")));
    } catch {
      this.tell("error", { message: "This browser has no WebGL 2, or it is switched off." });
    }
  }

  private close(): void {
    this.show?.close();
    this.show = undefined;
    this.canvas?.remove();
    this.canvas = undefined;
    this.sounds(false);
  }

  private tell<K extends keyof RoomElementEvents>(event: K, detail: RoomElementEvents[K]): void {
    if (event === "error") {
      this.say((detail as RoomElementEvents["error"]).message);
    }
    if (event === "left") {
      this.say((detail as RoomElementEvents["left"]).why);
    }
    // An error would reach the handlers of the page's own errors at the window.
    const bubbles = event !== "error";
    this.dispatchEvent(new CustomEvent(event, { detail, bubbles, composed: bubbles }));
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
