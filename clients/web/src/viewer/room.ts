// An open room: the conference, the space that shows it, and the controls around it.

import { h } from "../dom";
import type { Workers } from "../media/connection";
import { isPicture } from "../media/picture";
import type { DecodedFrame } from "../media/traffic";
import { unlessAborted } from "../publish/opening";
import type { Panel } from "../publish/panel";
import { Gaze } from "../scene/gaze";
import type { Panel as ScenePanel } from "../scene/panel";
import { uncovered, type World } from "../scene/world";
import { Encryption } from "../sframe/encryption";
import { parseKey } from "../sframe/secret";
import type { TileRef } from "../signal/messages";
import { refusalOf } from "../signal/rooms";
import { Chat, chatTopic } from "./chat";
import { Clicks } from "./clicks";
import { Conference } from "./conference";
import type { Embedding } from "./embed";
import { toggleFullScreen } from "./fullscreen";
import { Inspector } from "./inspector";
import type { Entry } from "./lobby";
import { Lock } from "./lock";
import type { Messages } from "./messages";
import { PeopleList } from "./people";
import { Sound } from "./sound";
import { Toolbar } from "./toolbar";

/** The share of the picture's height that the inspector covers at most, in style.css: faces are above it. */
const inspectorShare = 0.3;
/** Panels that reach farther than this share of the picture from an edge leave no room beside them. */
const mostBeside = 0.45;

export class RoomView {
  readonly conference: Conference;
  private readonly sound = new Sound((on) => (this.sounding!.ariaPressed = String(on)));
  private sounding: HTMLButtonElement | undefined;
  private readonly inspector: Inspector;
  private readonly toolbar: Toolbar;
  private readonly people: PeopleList;
  private readonly chat: Chat;
  private chatting: HTMLButtonElement | undefined;
  private readonly status = h("span", { class: "status", role: "status" });
  private readonly title = h("strong");
  /** Frames decoded since the last drawing, the newest of each line. */
  private readonly fresh = new Map<string, { track: TileRef; frame: DecodedFrame }>();
  /** The frames in the picture being drawn. */
  private placed: { track: TileRef; frame: DecodedFrame }[] = [];
  /** Aborted when the room is left: devices and modules that are still loading are not started. */
  private readonly over = new AbortController();
  private readonly gaze: Gaze;
  private tinted = false;
  /** The panel for publishing; loaded on first use. */
  panel: Panel | undefined;
  private loading = false;
  private enlarging: HTMLButtonElement | undefined;
  private clicks: Clicks | undefined;
  private showing: HTMLButtonElement | undefined;
  private readonly lock: Lock;
  /** The room is entered again with these settings after it was left. */
  private again: Entry | undefined;
  readonly firstPoint: { at: number | undefined } = { at: undefined };
  /** Panels open, close and change their size in several ways. */
  private readonly panels = new ResizeObserver(() => this.cover());

  constructor(
    private readonly element: HTMLElement,
    readonly world: World,
    workers: Workers,
    private readonly messages: Messages,
    private readonly entry: Entry,
    private readonly embedding: Embedding,
    private readonly ended: (why: string, again?: Entry) => void,
  ) {
    const encryption = entry.key === "" ? undefined : new Encryption(parseKey(entry.key), {
      opened: () => this.conference.meters.opened++,
      counted: () => {
        this.conference.warnOfRejected();
        this.lock.refresh();
      },
      failure: (message) => messages.say(message),
    });
    this.conference = new Conference(
      { url: signalling(), ...(entry.token ? { token: entry.token } : {}), ...(entry.room ? { room: entry.room } : {}), ...(entry.identity ? { identity: entry.identity } : {}), receiveData: entry.receiveData },
      workers,
      {
        frame: (track, frame) => this.arrived(track, frame),
        picture: (of, track) => world.objects.picture(of, track),
        cleared: (track) => {
          this.discard(track);
          world.objects.clear(track);
        },
        published: (participant, publication) => {
          world.objects.add(participant, publication);
          this.refresh();
          if (isPicture(publication)) {
            this.arrangePanels();
          }
        },
        unpublished: (participant, publication) => {
          world.objects.remove(participant, publication);
          this.refresh();
          this.arrangePanels();
        },
        posed: (pose) => world.objects.pose(pose),
        audio: (line, track) => this.sound.add(line, track),
        silenced: (lines) => lines.forEach((line) => this.sound.remove(line)),
        people: () => this.refresh(),
        state: (state, why) => this.entered(state, why),
        moved: () => this.gaze.entered(),
        trouble: (message) => {
          messages.say(message);
          embedding.error(message);
        },
        data: (message) => this.chat.take(message),
      },
      entry.decode,
      encryption,
    );
    this.gaze = new Gaze(world, {
      look: (viewpoint) => this.conference.look(viewpoint),
      arrange: (objects) => this.conference.session.send({ type: "arrange", objects }),
    });
    this.lock = new Lock(this.conference, (key) => {
      this.again = { ...entry, key };
      this.conference.leave();
    });
    this.inspector = new Inspector(this.conference);
    this.toolbar = new Toolbar((message) => messages.say(message));
    this.people = new PeopleList((who) => {
      this.enlarge(undefined);
      world.lookAt(who);
    });
    this.chat = new Chat({
      say: (text) => this.conference.data.say(chatTopic, text),
      name: (identity) => this.conference.name(identity),
      unread: (count) => this.unread(count),
      close: () => this.chatting!.click(),
    });
    this.build();
    this.conference.start();
  }

  private build(): void {
    const { toolbar } = this;
    this.showing = toolbar.add("Show yourself", "p", () => this.self());
    toolbar.add("Inspect", "i", () => {
      const open = this.inspector.toggle();
      this.cover();
      return open;
    });
    toolbar.add("Tint by quality", "t", () => this.tint());
    this.chatting = toolbar.add("Chat", "c", () => this.talk());
    this.sounding = toolbar.add("Sound", "m", () => this.sound.toggle());
    toolbar.add("Seat", "h", () => this.goHome(), false);
    this.enlarging = toolbar.add("Enlarge", "z", () => this.enlargeNext());
    this.enlarging.hidden = true;
    toolbar.add("Full screen", "f", toggleFullScreen);
    const leave = toolbar.add("Leave", "", () => this.conference.leave(), false);
    // Some browsers throw if the page has no permission.
    navigator.xr?.isSessionSupported("immersive-vr").then((can) => can && leave.before(toolbar.add("VR", "v", () => this.immerse())), () => {});
    this.element.replaceChildren(
      h("header", { class: "heading" }, this.title, this.lock.button, this.status, this.people.element), toolbar.element, this.inspector.element,
      this.chat.element, this.lock.panel,
      h("p", { class: "hint" }, "Drag to orbit · W A S D to walk · arrow keys to turn"),
    );
    [this.chat.element, this.lock.panel].forEach((panel) => this.panels.observe(panel));
    document.addEventListener("keydown", toolbar.key);
    document.addEventListener("keydown", this.escape);
    this.clicks = new Clicks(this.world.renderer.domElement, (x, y) => this.pointed(x, y));
    // The other participants need not wait for the grace period when the page is closed.
    addEventListener("pagehide", this.gone);
    this.world.navigation.focus();
  }

  /** Shows the number of unread messages on the button of the chat. */
  private unread(count: number): void {
    this.chatting!.textContent = count > 0 ? `Chat (${count})` : "Chat";
    this.chatting!.classList.toggle("unread", count > 0);
  }

  /** Opens or closes the chat. When it closes, the keyboard focus returns to the space. */
  private talk(): boolean {
    const open = this.chat.toggle();
    if (!open) {
      this.world.navigation.focus();
    }
    return open;
  }

  /** Panels were added or removed: a viewer at the seat continues to see all of them. */
  private arrangePanels(): void {
    const { world } = this;
    const panels = world.objects.panels();
    this.enlarging!.hidden = panels.length === 0;
    if (world.enlarged) {
      if (!panels.some((p) => p.panel === world.enlarged)) {
        this.enlarge(undefined);
      }
    } else if (world.atHome) {
      world.home();
    }
  }

  private goHome(): void {
    this.world.home();
    this.enlarging!.ariaPressed = "false";
  }

  /** Enlarges the next panel; after the last one, returns to the view before. */
  private enlargeNext(): boolean {
    const panels = this.world.objects.panels().map((p) => p.panel);
    const { enlarged } = this.world;
    this.enlarge(panels[enlarged ? panels.indexOf(enlarged) + 1 : 0]);
    return this.world.enlarged !== undefined;
  }

  private enlarge(panel: ScenePanel | undefined): void {
    this.world.enlarge(panel);
    this.enlarging!.ariaPressed = String(this.world.enlarged !== undefined);
  }

  /** A click enlarges a panel, or returns from it. */
  private pointed(x: number, y: number): void {
    const panel = this.world.panelAt(x, y);
    if (panel) {
      this.enlarge(panel === this.world.enlarged ? undefined : panel);
    }
  }

  private readonly escape = ({ key }: KeyboardEvent): void => {
    if (key === "Escape" && this.world.enlarged) {
      this.enlarge(undefined);
    }
  };

  private readonly gone = (): void => this.conference.leave();

  /** Opens or closes the panel for publishing. Its button shows whether the user publishes. */
  private async self(): Promise<void> {
    if (this.loading) {
      return;
    }
    if (!this.panel) {
      this.loading = true;
      await this.load().finally(() => (this.loading = false));
    }
    this.panel?.toggle();
  }

  private async load(): Promise<void> {
    const [{ Panel }, { wishesOf }, { videoWishesOf }] = await Promise.all([import("../publish/panel"), import("../publish/wishes"), import("../publish/video/wishes")]).catch((error: unknown) => {
      throw new Error(`a required module cannot be loaded (${error instanceof Error ? error.message : String(error)}). Reload the page: the server may have a newer version.`);
    });
    if (this.over.signal.aborted) {
      return;
    }
    const query = new URLSearchParams(location.search);
    this.panel = new Panel(this.conference, { points: wishesOf(query), video: videoWishesOf(query) }, (m) => this.messages.say(m), (live) => {
      this.showing!.ariaPressed = String(live);
      // The keyboard focus returns to the space, for walking.
      const element = this.panel?.element;
      if (element?.hidden && element.contains(document.activeElement)) {
        this.world.navigation.focus();
      }
    });
    this.element.append(this.panel.element);
    this.panels.observe(this.panel.element);
  }

  /** Moves people out of the parts of the picture that open panels cover. */
  private cover(): void {
    const widths = { left: 0, right: 0 };
    for (const panel of [this.chat.element, this.lock.panel, this.panel?.element]) {
      const { left, right, width } = panel?.getBoundingClientRect() ?? { left: 0, right: 0, width: 0 };
      if (width > 0 && right <= mostBeside * innerWidth) {
        widths.left = Math.max(widths.left, right);
      } else if (width > 0 && left >= (1 - mostBeside) * innerWidth) {
        widths.right = Math.max(widths.right, innerWidth - left);
      }
    }
    this.world.cover({ ...widths, bottom: this.inspector.element.hidden ? 0 : inspectorShare * innerHeight });
  }

  private tint(): boolean {
    this.tinted = !this.tinted;
    this.world.objects.tint(this.tinted);
    return this.tinted;
  }

  /** Enters or leaves the headset. */
  private async immerse(): Promise<void> {
    if (this.world.immersed) {
      await this.world.renderer.xr.getSession()?.end();
      return;
    }
    try {
      const opening = navigator.xr!.requestSession("immersive-vr", { requiredFeatures: ["local-floor"] });
      const session = await unlessAborted(this.over.signal, opening, (opened) => void opened.end());
      await this.world.immerse(session);
      if (this.over.signal.aborted) {
        await session.end();
      }
    } catch (error) {
      if (!this.over.signal.aborted) {
        this.messages.say(`The headset cannot show the room: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }

  private entered(state: string, why: string): void {
    this.status.textContent = { connecting: "connecting …", joined: "", resuming: "connection lost, trying again …", closed: "" }[state] ?? "";
    this.element.dataset["state"] = state;
    if (state === "joined") {
      this.gaze.entered();
      this.title.textContent = this.conference.room;
      document.title = `${this.conference.room} · volsfu`;
      this.embedding.joined(this.conference);
      this.begin();
    }
    if (state === "closed") {
      this.close(why);
    } else if (why !== "") {
      void this.inquire();
    }
  }

  /**
   * Requests the list of rooms with the same token, because browsers do not report why a websocket
   * was rejected. If the token is rejected there, no further attempt is made.
   */
  private async inquire(): Promise<void> {
    const refusal = await refusalOf("", this.entry.token);
    if (refusal !== undefined && !this.over.signal.aborted) {
      this.conference.leave(refusal);
    }
  }

  /** Starts publishing immediately if the link requests it. */
  private begin(): void {
    const { show } = this.entry;
    this.entry.show = undefined;
    if (show) {
      this.self().then(
        () => (show === "at once" && !this.over.signal.aborted ? this.panel?.begin() : undefined),
        (error: unknown) => this.messages.say(`Show yourself: ${error instanceof Error ? error.message : String(error)}`),
      );
    }
  }

  private close(why: string): void {
    this.over.abort();
    this.panel?.close();
    document.removeEventListener("keydown", this.toolbar.key);
    document.removeEventListener("keydown", this.escape);
    this.clicks?.close();
    this.world.enlarge(undefined);
    removeEventListener("pagehide", this.gone);
    this.inspector.close();
    this.panels.disconnect();
    this.world.cover(uncovered);
    this.lock.close();
    this.conference.encryption?.close();
    this.sound.close();
    for (const { identity, publications } of this.conference.participants.values()) {
      for (const { name } of publications) {
        this.world.objects.remove(identity, name);
      }
    }
    if (document.fullscreenElement) {
      void document.exitFullscreen();
    }
    if (this.world.immersed) {
      void this.world.renderer.xr.getSession()?.end();
    }
    const reason = why === "left" ? "" : why;
    this.embedding.left(reason);
    this.ended(reason, this.again);
  }

  private refresh(): void {
    this.embedding.present(this.conference);
    const people = [...this.conference.participants.keys()].filter((who) => who !== this.conference.identity);
    this.people.show(people.map((identity) => ({ identity, name: this.conference.name(identity), muted: this.conference.silent(identity) })), this.conference.audience);
    this.lock.refresh();
    // The table's size depends on the number of participants: the viewer's seat moves with it until
    // the viewer has moved.
    if (!this.gaze.begun) {
      this.world.home();
    }
  }

  private arrived(track: TileRef, frame: DecodedFrame): void {
    this.discard(track);
    this.fresh.set(keyOf(track), { track, frame });
  }

  /** Returns the frame of a tile that was not drawn. */
  private discard(track: TileRef): void {
    const before = this.fresh.get(keyOf(track));
    if (before) {
      this.fresh.delete(keyOf(track));
      this.conference.recycle(before.frame);
    }
  }

  /** Called before each drawing: adds the frames since the last one to the picture. */
  draw(): void {
    for (const { track, frame } of this.fresh.values()) {
      this.world.objects.show(track, frame.points, frame.quality, frame.raster);
      this.conference.recycle(frame);
      this.placed.push({ track, frame });
    }
    this.fresh.clear();
    for (const { track, quality } of this.conference.tiles()) {
      this.world.objects.sent(track, quality);
    }
    this.sound.follow(this.world, this.speakers());
    for (const { mid, participant } of this.speakers()) {
      const level = this.sound.level(mid);
      this.world.objects.speak(participant, level);
      this.people.speak(participant, level);
    }
  }

  /**
   * Called after each drawing: records the frames shown, and sends the position of the eye to the
   * server.
   */
  drawn(now: number): void {
    for (const { track, frame } of this.placed) {
      this.conference.shown(track, frame, now);
      if (frame.points.count > 0) {
        this.firstPoint.at ??= now;
      }
    }
    this.placed = [];
    this.gaze.step(now);
  }

  private *speakers(): Generator<{ mid: string; participant: string }> {
    for (const { mid, track } of this.conference.lines()) {
      if (track && this.conference.publication(track)?.kind === "audio") {
        yield { mid, participant: track.participant };
      }
    }
  }
}

function keyOf({ participant, publication, tile }: TileRef): string {
  return `${participant}\n${publication}\n${tile}`;
}

/** Returns the address of signalling, relative to this page. */
function signalling(): string {
  const url = new URL("v1/signal", document.baseURI);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.hash = "";
  return url.href;
}
