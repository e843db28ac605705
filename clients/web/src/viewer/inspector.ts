// The panel that tells what arrives of each tile, and lets a person choose its quality.

import { bitrate, h, milliseconds } from "../dom";
import type { Conference } from "./conference";

const refreshInterval = 500;

interface Row {
  element: HTMLTableRowElement;
  cells: HTMLTableCellElement[];
  quality: HTMLSelectElement;
}

const columns = ["Tile", "Quality", "Why", "fps", "Rate", "Points", "Network", "Wait", "Decode", "Show", "Lost"];

export class Inspector {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly summary = h("p", { class: "summary" });
  private readonly rows = new Map<string, Row>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly conference: Conference) {
    const head = h("tr", {}, ...columns.map((c) => h("th", { scope: "col" }, c)));
    this.element = h(
      "aside", { class: "inspector", hidden: true, ariaLabel: "What arrives of each tile" },
      this.summary, h("div", { class: "scroll" }, h("table", {}, h("thead", {}, head), this.body)),
    );
  }

  toggle(): boolean {
    this.element.hidden = !this.element.hidden;
    clearInterval(this.timer);
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
      seen.add(slot.mid);
      const figures = this.conference.meters.figures(slot.mid, now);
      const line = lines.get(slot.mid);
      total += figures?.bps ?? 0;
      const { participant, publication, tile } = slot.track;
      const row = this.row(slot.mid);
      row.cells[0]!.textContent = `${participant} / ${publication} / ${tile}`;
      this.offer(row, slot.mid);
      row.cells[2]!.textContent = slot.reason ?? "";
      const texts = [
        figures ? figures.fps.toFixed(0) : "–", figures ? bitrate(figures.bps) : "–", figures ? String(figures.points) : "–",
        milliseconds(figures?.network ?? NaN), milliseconds(figures?.wait ?? NaN), milliseconds(figures?.decode ?? NaN), milliseconds(figures?.shown ?? NaN),
        line && line.packets > 0 ? `${((100 * line.lost) / (line.packets + line.lost)).toFixed(1)} %` : "–",
      ];
      texts.forEach((text, i) => (row.cells[i + 3]!.textContent = text));
    }
    for (const [mid, row] of this.rows) {
      if (!seen.has(mid)) {
        row.element.remove();
        this.rows.delete(mid);
      }
    }
    const { estimate_bps, wanted_bps } = this.conference.bandwidth;
    this.summary.textContent =
      `${bitrate(total)} received; the server finds ${bitrate(estimate_bps)} of room and would send ${bitrate(wanted_bps)}. ` +
      `Round trip ${milliseconds(this.conference.session.clock.roundTrip)}.`;
  }

  private row(mid: string): Row {
    const before = this.rows.get(mid);
    if (before) {
      return before;
    }
    const quality = h("select", { ariaLabel: "Quality" });
    quality.addEventListener("change", () => this.choose(mid, quality.value));
    const cells = columns.map(() => h("td"));
    cells[1]!.append(quality, h("span", { class: "carried" }));
    const row = { element: h("tr", {}, ...cells), cells, quality };
    this.rows.set(mid, row);
    this.body.append(row.element);
    return row;
  }

  /** Offers the qualities of a row's publication, and names the one that is being sent. */
  private offer(row: Row, mid: string): void {
    const slot = this.conference.slots.get(mid);
    const publication = slot?.track && this.conference.publication(slot.track);
    if (!slot || !publication) {
      return;
    }
    const names = publication.qualities.map((q, i) => q.name || String(i));
    if (row.quality.options.length !== names.length + 2) {
      row.quality.replaceChildren(
        h("option", { value: "auto" }, "auto"), h("option", { value: "-1" }, "off"), ...names.map((name, i) => h("option", { value: String(i) }, name)),
      );
    }
    const carried = row.cells[1]!.querySelector(".carried")!;
    carried.textContent = slot.quality === undefined ? "" : slot.quality < 0 ? "off" : (names[slot.quality] ?? String(slot.quality));
  }

  private choose(mid: string, value: string): void {
    const track = this.conference.slots.get(mid)?.track;
    if (!track) {
      return;
    }
    this.conference.choose({ ...track, quality: value === "auto" ? "auto" : Number(value) });
  }
}
