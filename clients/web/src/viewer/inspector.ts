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
  ["Tile"], ["Quality"], ["Reason"], ["fps"], ["Rate"], ["Size", "Points of a tile; pixels of a webcam or a screen"],
  ["Publisher", "From capture until its first packet leaves the publisher"],
  ["Uplink", "Until the server has that packet; includes the publisher's time if that is unknown"],
  ["Server", "Until the server forwards it"],
  ["Downlink", "Until the complete frame has arrived"],
  ["Wait", "For a decoder"], ["Decode"], ["Show", "Until the picture is drawn"], ["All", "From capture until the picture is drawn"],
  ["Lost", "Packets that were lost at first"],
  ["Freezes", "Interruptions of a webcam or a screen since the line began, and their total time"],
];

export class Inspector {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly summary = h("p", { class: "summary" });
  private readonly rows = new Map<string, Row>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly conference: Conference) {
    const head = h("tr", {}, ...columns.map(([name, title = ""]) => h("th", { scope: "col", title }, name)));
    this.element = h(
      "aside", { class: "inspector", hidden: true, ariaLabel: "Received data of each tile" },
      this.summary, h("div", { class: "scroll" }, h("table", {}, h("thead", {}, head), this.body)),
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
    let total = 0;
    for (const slot of this.conference.tiles()) {
      const { mid, track } = slot;
      const figures = this.conference.meters.figures(mid, now);
      const pictures = this.conference.pictures.figures(mid, lines.get(mid), now);
      total += pictures?.bps ?? figures?.bps ?? 0;
      // A line with another tile has another row: a choice there refers to that tile.
      const key = `${mid}\n${track.participant}\n${track.publication}\n${track.tile}`;
      seen.add(key);
      const row = this.row(key, track);
      this.offer(row, slot);
      const texts = [
        slot.reason ?? "", ...(pictures ? picture(pictures) : [...arrival(figures), ...delays(figures, this.conference.layers.figures(track, now))]), loss(lines.get(mid)), freezes(pictures),
      ];
      texts.forEach((text, i) => (row.cells[i + 2]!.textContent = text));
    }
    for (const [key, row] of this.rows) {
      if (!seen.has(key)) {
        row.element.remove();
        this.rows.delete(key);
      }
    }
    const { estimate_bps, wanted_bps } = this.conference.bandwidth;
    this.summary.textContent =
      `${bitrate(total)} received; the server estimates a capacity of ${bitrate(estimate_bps)} and would send ${bitrate(wanted_bps)}. ` +
      `Round trip ${milliseconds(this.conference.session.clock.roundTrip)}.${encrypted(this.conference)}`;
  }

  private row(key: string, track: TileRef): Row {
    const before = this.rows.get(key);
    if (before) {
      return before;
    }
    const quality = h("select", { ariaLabel: `Quality of ${track.participant} / ${track.publication} / ${track.tile}` });
    quality.addEventListener("change", () => this.conference.choose({ ...track, quality: quality.value === "auto" ? "auto" : Number(quality.value) }));
    const carried = h("span", { class: "carried" });
    const cells = columns.map(() => h("td"));
    cells[0]!.textContent = `${track.participant} / ${track.publication} / ${track.tile}`;
    cells[1]!.append(quality, carried);
    const row = { element: h("tr", {}, ...cells), cells, quality, carried, offered: "" };
    this.rows.set(key, row);
    this.body.append(row.element);
    return row;
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

function arrival(figures: Figures | undefined): string[] {
  return figures ? [figures.fps.toFixed(0), bitrate(figures.bps), String(figures.points)] : ["–", "–", "–"];
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
  return [
    milliseconds(layers.publisher), measured ? milliseconds(layers.uplink, bounds.uplink) : `≤ ${milliseconds(layers.toServer)}`, milliseconds(layers.server), milliseconds(layers.downlink, bounds.downlink),
    milliseconds(layers.wait), milliseconds(layers.decode), milliseconds(layers.show), milliseconds(layers.all, bounds.all),
  ];
}

/** Returns the counts of encrypted frames; empty if the page has no key. */
function encrypted({ encryption }: Conference): string {
  return encryption ? ` Frames and packets decrypted: ${encryption.total.opened.toLocaleString("en")}, rejected: ${encryption.total.rejected.toLocaleString("en")}.` : "";
}

function loss(line: LineStatistics | undefined): string {
  return line && line.packets > 0 ? `${((100 * line.lost) / (line.packets + line.lost)).toFixed(1)} %` : "–";
}
