// The panel with the received data of each tile and the choice of its quality.

import { bitrate, h, milliseconds } from "../dom";
import type { LineStatistics } from "../media/connection";
import type { Slot } from "../media/slots";
import type { TileRef } from "../signal/messages";
import type { Conference } from "./conference";
import type { Layers } from "./layers";
import type { Figures } from "./meters";
import type { PictureFigures } from "./pictures";

const refreshInterval = 500;

/** A tile on a line. */
interface Row {
  element: HTMLTableRowElement;
  cells: HTMLTableCellElement[];
  quality: HTMLSelectElement;
  carried: HTMLElement;
  /** The names of the available qualities. */
  offered: string;
}

/** The columns, and explanations for some of them. */
const columns: readonly [string, string?][] = [
  ["Part", "The person and the number of the part of the person, a tile; or the name of a picture"],
  ["Quality", "The choice, and the quality that is received"], ["Chosen by", "Why this quality is received"],
  ["Frames/s", "Frames per second"], ["Rate"], ["Size", "Points of a tile; pixels of a webcam or a screen"],
  ["Sender", "From capture until the first packet leaves the sender"],
  ["To server", "Until the server has that packet; includes the sender's time if that is unknown, and the time in and between other servers"],
  ["Server", "Until the server forwards it"],
  ["To here", "Until the complete frame has arrived"],
  ["Waiting", "For a decoder"], ["Decoding"], ["Drawing", "Until the picture is drawn"], ["Total delay", "From capture until the picture is drawn"],
  ["Lost", "Packets that were lost at first"],
  ["Freezes", "Interruptions of a webcam or a screen since the line began, and their total time"],
];

export class Inspector {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly summary = h("p", { class: "summary" });
  private readonly totals = columns.map(() => h("td"));
  private readonly rows = new Map<string, Row>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly conference: Conference) {
    const head = h("tr", {}, ...columns.map(([name, title = ""]) => h("th", { scope: "col", title }, name)));
    this.element = h(
      "aside", { class: "inspector", hidden: true, ariaLabel: "Received data of each tile" },
      this.summary, h("div", { class: "scroll" }, h("table", {}, h("thead", {}, head), this.body, h("tfoot", {}, h("tr", {}, ...this.totals)))),
    );
  }

  toggle(): boolean {
    this.element.hidden = !this.element.hidden;
    clearInterval(this.timer);
    // Publishers and the server send the times of frames only while the panel is open.
    this.conference.follow(!this.element.hidden);
    if (!this.element.hidden) {
      void this.refresh();
      this.timer = setInterval(() => void this.refresh(), refreshInterval);
    }
    return !this.element.hidden;
  }

  close(): void {
    clearInterval(this.timer);
  }

  private async refresh(): Promise<void> {
    const lines = await this.conference.statistics();
    const now = performance.timeOrigin + performance.now();
    const seen = new Set<string>();
    const total = { bps: 0, points: 0, frames: 0, rows: 0, delays: [] as number[], packets: 0, lost: 0 };
    for (const slot of this.conference.tiles()) {
      const { mid, track } = slot;
      const figures = this.conference.meters.figures(mid, now);
      const pictures = this.conference.pictures.figures(mid, lines.get(mid), now);
      const layers = this.conference.layers.figures(track, now);
      const line = lines.get(mid);
      total.rows++;
      total.bps += pictures?.bps ?? figures?.bps ?? 0;
      total.frames += pictures?.fps ?? figures?.fps ?? 0;
      total.points += figures?.points ?? 0;
      total.packets += line ? line.packets + line.lost : 0;
      total.lost += line?.lost ?? 0;
      if (layers) {
        total.delays.push(layers.all);
      }
      // A line with another tile has another row: a choice there refers to that tile.
      const key = `${mid}\n${track.participant}\n${track.publication}\n${track.tile}`;
      seen.add(key);
      const row = this.row(key, track);
      this.offer(row, slot);
      const texts = [
        reasons[slot.reason ?? ""] ?? "", ...(pictures ? picture(pictures) : [...arrival(figures), ...delays(figures, layers)]), loss(line), freezes(pictures),
      ];
      texts.forEach((text, i) => (row.cells[i + 2]!.textContent = text));
    }
    for (const [key, row] of this.rows) {
      if (!seen.has(key)) {
        row.element.remove();
        this.rows.delete(key);
      }
    }
    const delay = total.delays.reduce((sum, v) => sum + v, 0) / total.delays.length;
    [
      "All", "", "", total.rows > 0 ? (total.frames / total.rows).toFixed(0) : "–", bitrate(total.bps), total.points.toLocaleString("en"),
      "", "", "", "", "", "", "", milliseconds(delay), loss(total.packets > 0 ? { packets: total.packets - total.lost, lost: total.lost } : undefined), "",
    ].forEach((text, i) => (this.totals[i]!.textContent = text));
    const { estimate_bps, wanted_bps } = this.conference.bandwidth;
    this.summary.textContent =
      `You receive ${bitrate(total.bps)}. Your link carries about ${bitrate(estimate_bps)}; everything at the best quality needs ${bitrate(wanted_bps)}. ` +
      `A message to the server and back takes ${milliseconds(this.conference.session.clock.roundTrip)}.${encrypted(this.conference)}`;
  }

  private row(key: string, track: TileRef): Row {
    const before = this.rows.get(key);
    if (before) {
      return before;
    }
    const quality = h("select", { ariaLabel: `Quality of ${this.name(track)}` });
    quality.addEventListener("change", () => this.conference.choose({ ...track, quality: quality.value === "auto" ? "auto" : Number(quality.value) }));
    const carried = h("span", { class: "carried" });
    const cells = columns.map(() => h("td"));
    cells[0]!.textContent = cells[0]!.title = this.name(track);
    cells[1]!.append(quality, carried);
    const row = { element: h("tr", {}, ...cells), cells, quality, carried, offered: "" };
    this.rows.set(key, row);
    this.body.append(row.element);
    return row;
  }

  /** Returns the name of a row: that of the person, and the part. */
  private name({ participant, publication, tile }: TileRef): string {
    const tiles = this.conference.publication({ participant, publication })?.tiles ?? [];
    const part = tiles[tile]?.label ?? (tiles.length > 1 ? `part ${tile + 1} of ${tiles.length}` : "");
    return [this.conference.name(participant), publication === "body" ? "" : publication, part].filter(Boolean).join(", ");
  }

  /**
   * Lists the qualities of a row's publication, selects the choice in force, and marks the quality
   * being sent.
   */
  private offer(row: Row, slot: Slot & { track: TileRef }): void {
    const names = this.conference.publication(slot.track)?.qualities.map((q, i) => q.name || String(i)) ?? [];
    const offered = JSON.stringify(names);
    if (row.offered !== offered) {
      row.offered = offered;
      row.quality.replaceChildren(
        h("option", { value: "auto" }, "auto"), h("option", { value: "-1" }, "off"), ...names.map((name, i) => h("option", { value: String(i) }, name)),
      );
    }
    // A selection in progress is not changed.
    if (document.activeElement !== row.quality) {
      row.quality.value = String(this.conference.choices.of(slot.track));
    }
    row.carried.textContent = slot.quality === undefined ? "" : slot.quality < 0 ? "off" : (names[slot.quality] ?? String(slot.quality));
  }
}

/** The reasons for a quality, in words. */
const reasons: Record<string, string> = { choice: "you", auto: "server", budget: "your link", unseen: "out of view" };

function arrival(figures: Figures | undefined): string[] {
  return figures ? [figures.fps.toFixed(0), bitrate(figures.bps), figures.points.toLocaleString("en")] : ["–", "–", "–"];
}

/** Returns the columns of a webcam or a screen. The times of its frames end in the browser's decoder. */
function picture({ fps, bps, width, height, wait, decode }: PictureFigures): string[] {
  return [fps.toFixed(0), bitrate(bps), `${width} × ${height}`, "–", "–", "–", "–", milliseconds(wait), milliseconds(decode), "–", "–"];
}

function freezes(pictures: PictureFigures | undefined): string {
  return pictures ? `${pictures.freezes}${pictures.freezes > 0 ? `, ${pictures.frozenSeconds.toFixed(1)} s` : ""}` : "–";
}

/**
 * Returns the delays by layer; until the server has sent its times, only those that this page
 * measures.
 */
function delays(figures: Figures | undefined, layers: Layers | undefined): string[] {
  if (!layers) {
    const { network, wait, decode, shown } = figures ?? { network: NaN, wait: NaN, decode: NaN, shown: NaN };
    return ["–", "–", "–", "–", ...[wait, decode, shown, network + wait + decode + shown].map((v) => milliseconds(v))];
  }
  const { bounds } = layers;
  const measured = Number.isFinite(layers.uplink) || !Number.isFinite(layers.toServer);
  const toServer = measured ? milliseconds(layers.uplink, bounds.uplink) : `≤ ${milliseconds(layers.toServer)}`;
  return [
    milliseconds(layers.publisher), `${toServer}${between(layers)}`, milliseconds(layers.server), milliseconds(layers.downlink, bounds.downlink),
    milliseconds(layers.wait), milliseconds(layers.decode), milliseconds(layers.show), milliseconds(layers.all, bounds.all),
  ];
}

/** Returns the times in other servers and between servers as text; empty if there is no other server. */
function between({ relays }: Layers): string {
  return relays ? ` (${milliseconds(relays.hold)} in other servers, ${milliseconds(relays.network, relays.bound)} between servers)` : "";
}

/** Returns the counts of encrypted frames; empty if the page has no key. */
function encrypted({ encryption }: Conference): string {
  return encryption ? ` Frames and packets decrypted: ${encryption.total.opened.toLocaleString("en")}, rejected: ${encryption.total.rejected.toLocaleString("en")}.` : "";
}

function loss(line: Pick<LineStatistics, "packets" | "lost"> | undefined): string {
  return line && line.packets > 0 ? `${((100 * line.lost) / (line.packets + line.lost)).toFixed(1)} %` : "–";
}
