import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { JoinOptions } from "../../src/client/options";
import type { VolsfuRoomElement } from "../../src/element/index";
import { FakeElement, stubElements } from "./elements";

const page = vi.hoisted(() => ({ options: undefined as JoinOptions | undefined, room: {} as object, removed: [] as string[] }));

vi.mock("../../src/scene/world", () => ({
  World: class {
    atHome = false;
    objects = { remove: (who: string, name: string) => page.removed.push(`${who}/${name}`), placements: () => [] };
    home(): void {}
    close(): void {}
  },
}));
vi.mock("../../src/client/room", () => ({
  join: async (options: JoinOptions) => {
    page.options = options;
    return page.room;
  },
}));

/** An audio context whose state a test changes. */
class Context {
  static all: Context[] = [];
  static refuses = false;
  state = "suspended";
  onstatechange: (() => void) | null = null;
  constructor() {
    Context.all.push(this);
  }
  async resume(): Promise<void> {
    if (Context.refuses) {
      throw new Error("no output device");
    }
    this.state = "running";
  }
  async close(): Promise<void> {}
}

describe("<volsfu-room>", () => {
  let element: VolsfuRoomElement;
  let events: string[];
  const root = (): (FakeElement & { ariaPressed: string })[] => (element.shadowRoot as unknown as FakeElement).children as (FakeElement & { ariaPressed: string })[];
  const part = (tag: string): FakeElement & { ariaPressed: string } => root().find((child) => child.tag === tag && !child.removed)!;

  beforeEach(async () => {
    stubElements();
    events = [];
    Context.all = [];
    Context.refuses = false;
    page.removed = [];
    page.room = { name: "lab", identity: "ada", state: "joined", participants: new Map([["grace", { identity: "grace", publications: [{ name: "body" }] }]]), soundLines: [], leave: () => page.options!.on!.state!("closed", "left") };
    vi.stubGlobal("AudioContext", Context);
    vi.stubGlobal("customElements", { get: () => undefined, define: () => {} });
    vi.stubGlobal("setInterval", () => 0);
    vi.stubGlobal("CustomEvent", class {
      constructor(readonly type: string, readonly init: { detail: object }) {}
    });
    vi.stubGlobal("HTMLElement", class {
      shadowRoot: FakeElement | undefined;
      isConnected = true;
      attachShadow = (): FakeElement => (this.shadowRoot = new FakeElement("root"));
      getAttribute = (name: string): string | null => (name === "url" ? "https://volsfu.example" : null);
      dispatchEvent = ({ type, init }: { type: string; init: { detail: object } }): void => void events.push(`${type} ${JSON.stringify(init.detail)}`);
    });
    vi.resetModules();
    const { VolsfuRoomElement } = await import("../../src/element/index");
    element = new VolsfuRoomElement();
    element.attributeChangedCallback("url", null, "https://volsfu.example");
    await vi.waitFor(() => expect(events).toHaveLength(1), { timeout: 60_000 });
  });
  afterEach(() => vi.unstubAllGlobals());

  it("shows whether sound is on, also if the system interrupts it, and reports that it cannot be played", async () => {
    const button = part("button");
    button.click();
    await vi.waitFor(() => expect(button.ariaPressed).toBe("true"), { timeout: 60_000 });
    Object.assign(Context.all[0]!, { state: "interrupted" }).onstatechange!();
    expect(button.ariaPressed).toBe("false");
    Context.refuses = true;
    button.click();
    await vi.waitFor(() => expect(events.at(-1)).toBe('error {"message":"The sound cannot be played: no output device"}'), { timeout: 60_000 });
  });

  it("shows nobody after the session has ended", () => {
    page.options!.on!.state!("closed", "removed by an operator");
    expect([events.at(-1), page.removed]).toEqual(['left {"why":"removed by an operator"}', ["grace/body"]]);
  });

  it("says that the browser has taken the graphics card, until it is given back", () => {
    const [canvas, message] = [part("canvas"), part("p")];
    canvas.dispatch("webglcontextlost");
    expect(events.at(-1)).toContain("The browser has taken the graphics card from this page");
    expect(message.textContent).toContain("If that takes long, reload the page.");
    canvas.dispatch("webglcontextrestored");
    expect(message.hidden).toBe(true);
  });
});
