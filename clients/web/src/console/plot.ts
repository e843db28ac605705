// Line charts of the last minutes, as SVG.

export interface Series {
  name: string;
  /** A class of the stylesheet with the colour of the line. */
  class: string;
  values: readonly number[];
}

const width = 520;
const height = 150;
const margin = { left: 58, right: 8, top: 10, bottom: 20 };
/** The shown time in minutes. */
const fewestMinutes = 1;
const mostMinutes = 5;

function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number>, text = ""): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, String(value));
  }
  element.textContent = text;
  return element;
}

/** Returns the smallest of 1, 2 and 5 times a power of ten that is at least the value. */
export function ceiling(value: number): number {
  if (!(value > 0)) {
    return 1;
  }
  const power = 10 ** Math.floor(Math.log10(value));
  return (([1, 2, 5, 10].find((m) => m * power >= value * 0.999999) ?? 10) * power);
}

/**
 * Draws series with common times in seconds; the last time is now. As many whole minutes are shown as
 * there are values, five at most.
 * @param least is the least end of the axis: the ticks of a smaller range would have the same text
 */
export function plot(title: string, seconds: readonly number[], series: readonly Series[], unit: (value: number) => string, least = 0): SVGSVGElement {
  const now = seconds.at(-1) ?? 0;
  const span = Math.min(Math.max(Math.ceil((now - (seconds[0] ?? now)) / 60), fewestMinutes), mostMinutes);
  const spanSeconds = 60 * span;
  const top = ceiling(Math.max(...series.flatMap((s) => [...s.values]), least));
  const x = (second: number): number => margin.left + ((second - now + spanSeconds) / spanSeconds) * (width - margin.left - margin.right);
  const y = (value: number): number => height - margin.bottom - (Math.min(value, top) / top) * (height - margin.top - margin.bottom);
  const chart = svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  for (const share of [0, 0.5, 1]) {
    const at = y(share * top);
    chart.append(svg("line", { class: "grid", x1: margin.left, x2: width - margin.right, y1: at, y2: at }));
    chart.append(svg("text", { class: "tick", x: margin.left - 6, y: at + 4, "text-anchor": "end" }, share === 0 ? "0" : unit(share * top)));
  }
  for (let minutes = span; minutes >= 0; minutes--) {
    const at = x(now - minutes * 60);
    const anchor = minutes === 0 ? "end" : "middle";
    chart.append(svg("text", { class: "tick", x: at, y: height - 5, "text-anchor": anchor }, minutes === 0 ? "now" : `−${minutes} min`));
  }
  for (const { class: name, values } of series) {
    const points = seconds.map((s, i) => [s, values[i] ?? 0] as const).filter(([s]) => s >= now - spanSeconds);
    chart.append(svg("polyline", { class: `line ${name}`, points: points.map(([s, v]) => `${x(s).toFixed(1)},${y(v).toFixed(1)}`).join(" ") }));
  }
  return chart;
}
