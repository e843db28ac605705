// The page of the console: figures of the server, the nodes of its cluster, then the participants of each room with
// the qualities that they receive and the reasons.

import { bitrate, h, milliseconds } from "../dom";
import { morph } from "../morph";
import { closeRoom, drain, drainNode, kick, moveRoom } from "./api";
import { nodesCard } from "./nodes";
import { plot } from "./plot";
import {
  Histories, type ParticipantState, type PublicationState, publishedBps, Rates, type ReceptionState, type RoomState, type ServerState, type SlotState, type Snapshot, takers,
  totalsOf, uplinkECN,
} from "./state";

const reasons: Record<string, string> = {
  choice: "chosen by the receiver",
  auto: "the best use of the link's capacity",
  budget: "limited by the capacity of the link",
  unseen: "not in the receiver's view",
};

/** The reasons in a word or two, beside a quality that is not the best use of the link. */
const remarks: Record<string, string> = { choice: "chosen", budget: "link full", unseen: "out of view" };

/** The columns of a room's table, and explanations for some of them. */
const columns: readonly [string, string?][] = [
  ["Participant", "A click shows what the participant receives and publishes"], ["Node"],
  ["Publishes", "Tiles × qualities, and the bit rate of all of them"], ["Uplink ECN", "The ECN codepoint of the participant's packets"],
  ["Estimate", "The estimated capacity of the link to the participant"], ["Target", "The bit rate of the chosen qualities"],
  ["Sent", "The bit rate on the link to the participant"], ["Queue", "The time that packets wait on the link"], ["Round trip"],
  ["Loss", "Packets that were lost on the link"], ["L4S", "The state of L4S on the link"], [""],
];

/** The least range of the plot of delays, in milliseconds. */
const leastDelay = 1;

/** The states of L4S on the hop to a receiver. */
const l4sStates: Record<string, string> = {
  off: "Packets leave as Not-ECT: the receiver does not report ECN, or the controller does not use ECN.",
  testing: "Packets leave as ECT(1). The first reports are due.",
  capable: "ECT(1) arrives. No packet has been marked lately, and the delay governs the rate.",
  marked: "The queue marks packets. The rate follows the share of marked packets.",
  classic: "The queue marks as classic ECN queues do. Packets leave as ECT(0), and a mark counts as a loss.",
  failed: "The path does not carry ECT(1). Packets leave as Not-ECT for five minutes.",
};

export class Board {
  readonly element = h("main", { class: "board" });
  private readonly figures = h("section", { class: "figures", ariaLabel: "The server" });
  private readonly nodes = h("section", { class: "nodes-board", ariaLabel: "Nodes" });
  private readonly rooms = h("section", { class: "rooms-board", ariaLabel: "Rooms" });
  private readonly head = h("span", { class: "version" });
  private readonly histories = new Histories();
  private readonly rates = new Rates();
  private readonly open = new Set<string>();
  private last: Snapshot | undefined;

  constructor(
    private readonly token: () => string,
    private readonly say: (message: string) => void,
  ) {
    const stop = h("button", { type: "button", class: "danger" }, "Drain server");
    stop.addEventListener("click", () => this.confirm("Accept no new participants, and stop the server when all have left?", () => drain(this.token())));
    this.element.append(h("header", { class: "board-head" }, h("h1", {}, "volsfu"), this.head, stop), this.figures, this.nodes, this.rooms);
    this.element.hidden = true;
    // One listener serves all buttons of a section, since nodes and rooms are added and removed.
    for (const section of [this.nodes, this.rooms]) {
      section.addEventListener("click", (event) => {
        const button = event.target instanceof Element ? event.target.closest("button") : null;
        if (button) {
          this.pressed(button.dataset);
        }
      });
    }
  }

  private pressed({ act, room = "", identity = "", node = "" }: DOMStringMap): void {
    const key = `${room}\n${identity}`;
    switch (act) {
      case "drain":
        this.confirm(`Move the participants of node “${node}” to others, and stop the node?`, () => drainNode(this.token(), node));
        break;
      case "move":
        this.move(room);
        break;
      case "close":
        this.confirm(`Close room “${room}” and remove all participants?`, () => closeRoom(this.token(), room));
        break;
      case "kick":
        this.confirm(`Remove “${identity}” from “${room}”?`, () => kick(this.token(), room, identity));
        break;
      case "open":
        if (!this.open.delete(key)) {
          this.open.add(key);
        }
        this.draw();
        break;
    }
  }

  show(snapshot: Snapshot): void {
    this.last = snapshot;
    this.histories.take(snapshot);
    this.rates.take(snapshot.server);
    this.element.hidden = false;
    this.draw();
  }

  clear(): void {
    this.element.hidden = true;
  }

  private draw(): void {
    const snapshot = this.last;
    if (!snapshot) {
      return;
    }
    const self = snapshot.nodes?.find((n) => n.self);
    this.head.textContent = `${snapshot.server.version}${self ? ` · node ${self.name}` : ""}${snapshot.server.draining ? " · draining" : ""} · up ${duration(snapshot.server)}`;
    morph(this.figures, this.serverFigures(snapshot));
    morph(this.nodes, snapshot.nodes ? [nodesCard(snapshot.nodes, snapshot.failed ?? [], snapshot.server.now)] : []);
    morph(this.rooms, snapshot.rooms.length > 0 ? snapshot.rooms.map((r) => this.room(r)) : [h("p", { class: "empty" }, "No room is open.")]);
  }

  private serverFigures({ server, rooms, nodes }: Snapshot): HTMLElement[] {
    const people = rooms.reduce((n, r) => n + r.participants.length, 0);
    const figure = (name: string, value: string, detail: string): HTMLElement => h("div", { class: "figure" }, h("h2", {}, name), h("strong", {}, value), h("small", {}, detail));
    const r = this.rates;
    return [
      figure("Participants", String(people), `${rooms.length} ${rooms.length === 1 ? "room" : "rooms"}${nodes ? " on all nodes" : ""}`),
      figure("Received", bitrate(r.receivedBps), `${server.tracks} tracks, ${megabytes(server.cache_bytes)} cached`),
      figure("Sent", bitrate(r.sentBps), `${server.active_slots} of ${server.slots} slots, ${(100 * r.parityShare).toFixed(1)} % parity`),
      figure("Frames", `${r.framesPerSecond.toFixed(0)} / s`, `${r.switchesPerSecond.toFixed(0)} switches / s`),
      figure("Frames dropped", `${r.droppedPerSecond.toFixed(0)} / s`,
        `in all: ${server.frames.dropped_late} too late, ${server.frames.dropped_overrun} no longer in the cache, ${server.frames.dropped_budget} waited too long for a link`),
      figure("Requests for lost packets", `${r.nacksPerSecond.toFixed(0)} / s`, `from receivers; ${server.nacks.answered} packets sent again`),
      figure("Packets lost for good", String(server.nacks.lost), `from publishers; ${server.nacks.recovered} recovered, ${server.nacks.delayed} only late`),
      figure("Time in the server", milliseconds(server.residence_p50_ms), `median of packets; 99 of 100 at most ${milliseconds(server.residence_p99_ms)}`),
    ];
  }

  private room(room: RoomState): HTMLElement {
    const close = h("button", { type: "button", class: "danger" }, "Close room");
    Object.assign(close.dataset, { act: "close", room: room.name });
    const nodes = this.last?.nodes;
    const move = nodes && h("button", { type: "button", class: "danger" }, "Move room");
    Object.assign(move?.dataset ?? {}, { act: "move", room: room.name });
    const head = columns.filter(([name]) => nodes || name !== "Node").map(([name, title = ""]) => h("th", { scope: "col", title }, name));
    const rows = room.participants.flatMap((p) => this.participant(room, p));
    const { published, target, sent } = totalsOf(room);
    const total = ["All", ...(nodes ? [""] : []), bitrate(published), "", "", bitrate(target), bitrate(sent), "", "", "", "", ""].map((text) => h("td", {}, text));
    return h(
      "article", { class: "room-board" }, h("header", {}, h("h2", {}, room.name), move, close),
      h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows), h("tfoot", {}, h("tr", {}, ...total)))),
    );
  }

  private participant(room: RoomState, p: ParticipantState): HTMLTableRowElement[] {
    const key = `${room.name}\n${p.identity}`;
    const name = h("button", { type: "button", class: "name", ariaExpanded: String(this.open.has(key)) }, p.identity);
    Object.assign(name.dataset, { act: "open", room: room.name, identity: p.identity });
    const out = h("button", { type: "button", class: "danger" }, "Remove");
    Object.assign(out.dataset, { act: "kick", room: room.name, identity: p.identity });
    const state = p.connected ? "" : p.present ? " (connecting)" : " (away)";
    const r = p.reception;
    const row = h(
      "tr", {}, h("td", {}, name, state, p.vr2gather ? h("small", {}, " VR2Gather") : undefined), this.last?.nodes ? h("td", {}, p.node ?? "–") : undefined, h("td", {}, p.publications.map(describe).join("; ") || "–"),
      h("td", {}, p.ecn ? uplinkECN(p.ecn) : "–"), ...receptionCells(r).map((text) => h("td", { class: "number" }, text)), l4sCell(r), h("td", {}, out),
    );
    if (!this.open.has(key)) {
      return [row];
    }
    return [row, h("tr", { class: "detail" }, h("td", { colSpan: this.last?.nodes ? 12 : 11 }, ...this.detail(room, p)))];
  }

  private detail(room: RoomState, p: ParticipantState): HTMLElement[] {
    const parts: HTMLElement[] = [];
    if (p.reception) {
      const samples = this.histories.of(room.name, p.identity);
      const seconds = samples.map((s) => s.at);
      parts.push(h(
        "div", { class: "plots" },
        h("figure", {}, legend([["estimate", "Estimate"], ["target", "Target"], ["sent", "Sent"]]), plot("Bit rates", seconds, [
          { name: "estimate", class: "estimate", values: samples.map((s) => s.estimate_bps) },
          { name: "target", class: "target", values: samples.map((s) => s.target_bps) },
          { name: "sent", class: "sent", values: samples.map((s) => s.sent_bps) },
        ], (v) => bitrate(v).replace(".0 ", " ").replace("bit/s", ""))),
        h("figure", {}, legend([["queue", "Queue delay"]]), plot("Queue delay", seconds, [{ name: "queue", class: "queue", values: samples.map((s) => s.queue_delay_ms) }], milliseconds, leastDelay)),
      ));
      parts.push(this.slots(room, p.reception));
    }
    for (const publication of p.publications.filter((x) => x.kind === "video")) {
      parts.push(tracks(publication));
    }
    return parts;
  }

  /**
   * The quality of each tile for each receiver, with the reason: a line for each publication, a
   * mark for each tile.
   */
  private slots(room: RoomState, r: ReceptionState): HTMLElement {
    const byPublication = new Map<string, SlotState[]>();
    for (const s of r.slots) {
      const key = `${s.participant} / ${s.publication}`;
      byPublication.set(key, [...(byPublication.get(key) ?? []), s]);
    }
    const list = h("dl", { class: "slots" });
    for (const [name, slots] of byPublication) {
      const names = room.participants.find((p) => p.identity === slots[0]!.participant)?.publications.find((x) => x.name === slots[0]!.publication)?.qualities ?? [];
      list.append(h("dt", {}, name), h("dd", {}, ...slots.sort((a, b) => a.tile - b.tile).map((s) => chip(s, names))));
    }
    const how = r.viewpoint ? "based on the receiver's view" : "without a viewpoint of the receiver";
    return h("div", {}, h("h3", {}, `Receives (${how}; parity ${(100 * r.parity).toFixed(0)} %)`), list);
  }

  /** Asks for the node to which the participants of a room go. */
  private move(room: string): void {
    const names = takers(this.last?.nodes ?? []);
    const choice = h("select", {}, ...names.map((name) => h("option", { value: name }, name)));
    this.ask([h("p", {}, `Move the participants of room “${room}” to node`), choice], "Move", () => moveRoom(this.token(), room, choice.value));
  }

  private confirm(question: string, act: () => Promise<unknown>): void {
    this.ask([h("p", {}, question)], "Yes", act);
  }

  /** Shows a question, and the error of the action or its result if that is a text. */
  private ask(question: HTMLElement[], answer: string, act: () => Promise<unknown>): void {
    const yes = h("button", { type: "submit", class: "primary", value: "yes" }, answer);
    const dialog = h("dialog", {}, h("form", { method: "dialog" }, ...question, h("button", { type: "submit", value: "no" }, answer === "Yes" ? "No" : "Cancel"), yes));
    document.body.append(dialog);
    dialog.addEventListener("close", () => {
      dialog.remove();
      this.say("");
      if (dialog.returnValue === "yes") {
        act().then((result) => typeof result === "string" && this.say(result), (error: unknown) => this.say(error instanceof Error ? error.message : String(error)));
      }
    });
    dialog.showModal();
  }
}

function receptionCells(r: ReceptionState | undefined): string[] {
  if (!r) {
    return ["–", "–", "–", "–", "–", "–"];
  }
  const known = (text: string): string => (r.known ? text : "–");
  return [
    known(bitrate(r.estimate_bps)), bitrate(r.target_bps), bitrate(r.sent_bps), known(milliseconds(r.queue_delay_ms)), known(milliseconds(r.rtt_ms)),
    known(`${(100 * r.loss).toFixed(1)} %`),
  ];
}

function l4sCell(r: ReceptionState | undefined): HTMLElement {
  if (!r) {
    return h("td", {}, "–");
  }
  const share = r.l4s === "marked" ? ` ${(100 * r.ce_share).toFixed(1)} %` : "";
  return h("td", { class: `l4s ${r.l4s}`, title: l4sStates[r.l4s] ?? "" }, r.l4s + share);
}

function describe(p: PublicationState): string {
  return p.kind === "audio" ? `${p.name} (audio)` : `${p.name} (${p.tiles} × ${p.qualities.length}, ${bitrate(publishedBps(p))})`;
}

function chip(s: SlotState, names: readonly string[]): HTMLElement {
  const quality = s.quality < 0 ? "off" : names[s.quality] || String(s.quality);
  const level = s.quality < 0 ? "off" : `q${Math.round((s.quality / Math.max(names.length - 1, 1)) * 4)}`;
  return h(
    "span", { class: `chip ${level} ${s.reason}`, title: `tile ${s.tile}: ${quality}, ${reasons[s.reason] ?? "not decided yet"}; ${s.frames} frames, ${s.retransmissions} retransmissions` },
    h("b", {}, String(s.tile)), ` ${quality}`, remarks[s.reason] ? h("i", {}, ` ${remarks[s.reason]}`) : undefined,
  );
}

/** The output of a publisher: a rate for each tile and quality, or that it pauses. */
function tracks(p: PublicationState): HTMLElement {
  const head = h("tr", {}, h("th", { scope: "col" }, "Tile"), ...p.qualities.map((q, i) => h("th", { scope: "col" }, q || String(i))));
  const rows = p.rates_bps.map((rates, tile) =>
    h("tr", {}, h("th", { scope: "row" }, String(tile)), ...rates.map((rate, q) => h("td", { class: "number" }, p.paused[tile]?.[q] ? "paused" : rate > 0 ? bitrate(rate) : "silent"))));
  return h("div", {}, h("h3", {}, `Publishes ${p.name}, ${p.codec}`), h("table", { class: "tracks" }, h("thead", {}, head), h("tbody", {}, ...rows)));
}

function legend(entries: [string, string][]): HTMLElement {
  return h("figcaption", {}, ...entries.map(([name, label]) => h("span", { class: `key ${name}` }, label)));
}

function duration(s: ServerState): string {
  const minutes = Math.floor((Date.parse(s.now) - Date.parse(s.started)) / 60000);
  const hours = Math.floor(minutes / 60);
  return hours >= 48 ? `${Math.floor(hours / 24)} days` : hours > 0 ? `${hours} h ${minutes % 60} min` : `${minutes} min`;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}
