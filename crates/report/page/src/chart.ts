// A chart: uPlot for axes, scales, zoom and cursor; our own drawing for what it does not have: markers that differ
// in shape and not only in colour, and curves that are evaluated at every pixel, so that they stay smooth at any
// zoom and on any axis.
//
// Charts of one group share their x axis: the cursor moves on all, and a zoom on one zooms all.

import uPlot from "uplot";
import { append, h, svg, type Child } from "./dom.ts";
import { tick } from "./format.ts";
import { logSplits, rangeX, rangeY } from "./scale.ts";
import { color, onChange } from "./theme.ts";

export type Marker = "up" | "dot" | "down" | "ring" | "square" | "diamond" | "cross";

export interface Series {
  readonly label: string;
  readonly y: ArrayLike<number | null>;
  /** Custom property of the style sheet that has the colour. */
  readonly color: string;
  /** Points with this marker. */
  readonly marker?: Marker;
  /** A line through the points; "step" holds each value up to the next x, "stem" goes down to the axis. */
  readonly line?: "straight" | "step" | "stem";
  readonly dash?: number[];
  readonly hidden?: boolean;
  /** An edge of a band: neither drawn as a line nor in the legend. */
  readonly quiet?: boolean;
  readonly title?: string;
}

export interface Curve {
  readonly label: string;
  readonly f: (x: number) => number;
  /** The band around it reaches from the curve over this factor to the curve times it. */
  readonly band?: number;
  readonly color: string;
  readonly dash?: number[];
  readonly from: number;
  readonly to: number;
  readonly title?: string;
}

export interface Line {
  readonly x: number;
  readonly label: string;
}

export interface Spec {
  /** What a screen reader is told that this is. */
  readonly label: string;
  readonly x: ArrayLike<number>;
  readonly series: readonly Series[];
  readonly curves?: readonly Curve[];
  readonly lines?: readonly Line[];
  /** Pairs of series, upper first, between which the ground is tinted. */
  readonly bands?: readonly (readonly [number, number])[];
  readonly logX: boolean;
  readonly logY: boolean;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly formatX?: (v: number) => string;
  readonly formatY?: (v: number) => string;
  /** A fixed top of the y axis, such as 1 for shares. */
  readonly yMax?: number;
  /** The y axis may start above 0. */
  readonly yFree?: boolean;
  readonly height: number;
  readonly group?: Group;
  /** Names written at the right end of each line. */
  readonly endLabels?: boolean;
  readonly noLegend?: boolean;
}

/** Charts that zoom together. */
export class Group {
  readonly key = uPlot.sync(`group-${Math.random()}`).key;
  private readonly charts = new Set<uPlot>();
  private busy = false;

  add(u: uPlot): void {
    this.charts.add(u);
  }

  remove(u: uPlot): void {
    this.charts.delete(u);
  }

  zoomed(from: uPlot): void {
    if (this.busy) return;
    this.busy = true;
    const { min, max } = from.scales["x"]!;
    for (const u of this.charts) {
      if (u !== from && min != null && max != null) u.setScale("x", { min, max });
    }
    this.busy = false;
  }
}

export class Chart {
  readonly element: HTMLElement;
  private u: uPlot | null = null;
  private readonly plot = h("div", { class: "plot", role: "img" });
  private readonly legend = h("div", { class: "legend" });
  private values: HTMLElement[] = [];
  private readonly observer: ResizeObserver;
  private readonly sight: IntersectionObserver;
  private readonly forget: () => void;
  /** Series and curves that are not shown, by label; and those that the user or a default has decided about. */
  private readonly hidden = new Set<string>();
  private readonly decided = new Set<string>();
  private ready = false;
  private seen = false;
  /** What is drawn is not what the spec says. */
  private stale = true;

  constructor(private spec: Spec) {
    this.element = h("div", { class: "chart" }, spec.noLegend ? null : this.legend, this.plot);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.plot);
    // Charts out of view are drawn when they come into it.
    this.sight = new IntersectionObserver(
      (entries) => {
        this.seen = entries[entries.length - 1]!.isIntersecting;
        if (this.seen && this.stale) this.draw();
      },
      { rootMargin: "120px" },
    );
    this.sight.observe(this.plot);
    window.addEventListener("beforeprint", this.print);
    this.forget = onChange(() => this.draw());
  }

  update(spec: Spec): void {
    this.spec = spec;
    if (this.ready) this.draw();
  }

  destroy(): void {
    this.observer.disconnect();
    this.sight.disconnect();
    window.removeEventListener("beforeprint", this.print);
    this.forget();
    this.drop();
  }

  /** Paper has no view to come into. */
  private readonly print = (): void => {
    this.seen = true;
    if (this.stale) this.draw();
  };

  private drop(): void {
    if (!this.u) return;
    this.spec.group?.remove(this.u);
    this.u.destroy();
    this.u = null;
  }

  private resize(): void {
    const width = this.plot.clientWidth;
    if (width === 0) return;
    this.ready = true;
    if (!this.u) this.draw();
    else if (this.u.width !== width) this.u.setSize({ width, height: this.spec.height });
  }

  private draw(): void {
    const { spec } = this;
    const width = this.plot.clientWidth;
    this.stale = true;
    this.plot.style.height = `${spec.height}px`;
    if (width === 0 || !this.seen) return;
    this.stale = false;
    this.drop();
    for (const s of spec.series) {
      if (s.hidden && !this.decided.has(s.label)) this.hidden.add(s.label);
      this.decided.add(s.label);
    }
    this.plot.setAttribute("aria-label", spec.label);
    if (!spec.noLegend) this.drawLegend();
    // Zero has no place on a log axis. Only the first size can be zero.
    let start = 0;
    if (spec.logX) while (start < spec.x.length && spec.x[start]! <= 0) start++;
    const cut = (values: ArrayLike<number | null>): (number | null)[] => Array.prototype.slice.call(values, start);
    const data = [cut(spec.x), ...spec.series.map((s) => cut(s.y))] as uPlot.AlignedData;
    this.u = new uPlot(this.options(width, data[0]), data, this.plot);
    spec.group?.add(this.u);
  }

  private options(width: number, xs: ArrayLike<number>): uPlot.Options {
    const { spec } = this;
    const first = xs[0] ?? (spec.logX ? 1 : 0);
    const last = xs[xs.length - 1] ?? 1;
    const ink = color("--muted");
    const grid = { stroke: color("--grid"), width: 1 };
    const font = `11px ${color("--sans")}`;
    const axis = (label: string, values: (v: number) => string, log: boolean): uPlot.Axis => ({
      stroke: ink,
      font,
      label,
      labelFont: font,
      labelSize: 16,
      labelGap: 2,
      gap: 4,
      grid,
      ticks: { ...grid, size: 4 },
      values: (_u, splits) => splits.map((v) => (v == null ? "" : values(v))),
      ...(log ? { splits: (_u, _i, min, max) => logSplits(min, max), filter: (_u, splits) => splits } : {}),
    });
    return {
      width,
      height: spec.height,
      padding: [10, spec.endLabels ? 150 : 14, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false, distr: spec.logX ? 3 : 1, range: (_u, min, max) => rangeX(min, max, first, last, spec.logX) },
        y: { distr: spec.logY ? 3 : 1, range: (_u, min, max) => rangeY(min, max, spec) },
      },
      axes: [
        { ...axis(spec.xLabel, spec.formatX ?? tick, spec.logX), size: 28, space: 56 },
        { ...axis(spec.yLabel, spec.formatY ?? tick, spec.logY), size: 50, space: 34, labelSize: 18 },
      ],
      bands: (spec.bands ?? []).map(([high, low]) => ({
        series: [high + 1, low + 1],
        fill: tint(color(spec.series[high]!.color)),
      })),
      series: [{}, ...spec.series.map((s) => this.seriesOptions(s))],
      cursor: {
        x: true,
        y: false,
        points: { show: false },
        drag: { x: true, y: false, dist: 4 },
        ...(spec.group ? { sync: { key: spec.group.key, setSeries: false } } : {}),
      },
      hooks: {
        drawAxes: [(u) => this.drawCurves(u, "band")],
        draw: [(u) => this.drawMarkers(u), (u) => this.drawCurves(u, "line"), (u) => spec.endLabels && this.drawEndLabels(u)],
        setCursor: [(u) => this.showValues(u.cursor.idx ?? null)],
        setScale: [(u, key) => key === "x" && spec.group?.zoomed(u)],
      },
    };
  }

  private seriesOptions(s: Series): uPlot.Series {
    const paths = uPlot.paths;
    return {
      show: !this.hidden.has(s.label),
      points: { show: false },
      paths:
        s.quiet || s.line === "straight" ? paths.linear!() : s.line === "step" ? paths.stepped!({ align: 1 }) : () => null,
      stroke: color(s.color),
      width: s.quiet ? 0 : 1.75,
      ...(s.dash ? { dash: s.dash } : {}),
      spanGaps: true,
    };
  }

  private drawCurves(u: uPlot, what: "band" | "line"): void {
    const { ctx } = u;
    const { left, top, width, height } = u.bbox;
    const ratio = uPlot.pxRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    if (what === "band") for (const line of this.spec.lines ?? []) this.drawLine(u, line);
    for (const curve of this.spec.curves ?? []) {
      if (this.hidden.has(curve.label)) continue;
      const from = Math.max(left, Math.min(left + width, u.valToPos(curve.from, "x", true)));
      const to = Math.max(left, Math.min(left + width, u.valToPos(curve.to, "x", true)));
      const steps = Math.max(1, Math.ceil((to - from) / ratio));
      const xs: number[] = [];
      const mid: number[] = [];
      const low: number[] = [];
      const high: number[] = [];
      const y = (v: number): number => {
        const p = u.valToPos(this.spec.logY ? Math.max(v, 1e-12) : v, "y", true);
        return Math.max(top - height * 9, Math.min(top + height * 10, p));
      };
      for (let i = 0; i <= steps; i++) {
        const px = from + ((to - from) * i) / steps;
        const v = curve.f(u.posToVal((px - left) / ratio, "x"));
        if (!Number.isFinite(v)) continue;
        xs.push(px);
        mid.push(y(v));
        if (curve.band) {
          low.push(y(v / curve.band));
          high.push(y(v * curve.band));
        }
      }
      if (what === "band") {
        if (!curve.band) continue;
        ctx.beginPath();
        xs.forEach((x, i) => ctx.lineTo(x, high[i]!));
        for (let i = xs.length - 1; i >= 0; i--) ctx.lineTo(xs[i]!, low[i]!);
        ctx.closePath();
        ctx.globalAlpha = 0.13;
        ctx.fillStyle = color(curve.color);
        ctx.fill();
        ctx.globalAlpha = 1;
        continue;
      }
      ctx.beginPath();
      xs.forEach((x, i) => ctx.lineTo(x, mid[i]!));
      if (u.data[0].length > 400) {
        // A halo keeps the line readable across thousands of markers.
        ctx.lineWidth = 4.5 * ratio;
        ctx.strokeStyle = color("--panel");
        ctx.globalAlpha = 0.65;
        ctx.stroke();
        ctx.globalAlpha = 1;
      }
      ctx.setLineDash((curve.dash ?? []).map((d) => d * ratio));
      ctx.lineWidth = 1.75 * ratio;
      ctx.strokeStyle = color(curve.color);
      ctx.stroke();
      ctx.setLineDash([]);
    }
    ctx.restore();
  }

  private drawLine(u: uPlot, line: Line): void {
    const { ctx } = u;
    const { left, top, width, height } = u.bbox;
    const x = u.valToPos(line.x, "x", true);
    if (!(x >= left && x <= left + width)) return;
    const ratio = uPlot.pxRatio;
    ctx.beginPath();
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.lineWidth = ratio;
    ctx.strokeStyle = color("--muted");
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.fillStyle = color("--muted");
    ctx.font = `${11 * ratio}px ${color("--sans")}`;
    ctx.textBaseline = "top";
    const end = x > left + width * 0.8;
    ctx.textAlign = end ? "right" : "left";
    ctx.fillText(line.label, x + (end ? -4 : 4) * ratio, top + 3 * ratio);
  }

  private drawMarkers(u: uPlot): void {
    const { ctx } = u;
    const { left, top, width, height } = u.bbox;
    const ratio = uPlot.pxRatio;
    const xs = u.data[0];
    ctx.save();
    ctx.beginPath();
    ctx.rect(left - 4 * ratio, top - 4 * ratio, width + 8 * ratio, height + 8 * ratio);
    ctx.clip();
    const columns = Math.ceil(width / ratio) + 1;
    // One marker per pixel is all that can be seen: 100,000 points draw as fast as a screenful.
    const taken = new Uint8Array(columns * (Math.ceil(height / ratio) + 1));
    this.spec.series.forEach((s, i) => {
      if (this.hidden.has(s.label) || (!s.marker && s.line !== "stem")) return;
      const ys = u.data[i + 1]!;
      const size = (xs.length > 2000 ? 1.6 : xs.length > 400 ? 2.2 : xs.length > 120 ? 2.8 : 3.5) * ratio;
      taken.fill(0);
      ctx.beginPath();
      for (let j = 0; j < xs.length; j++) {
        const y = ys[j];
        if (y == null || (this.spec.logY && y <= 0)) continue;
        const px = u.valToPos(xs[j]!, "x", true);
        const py = u.valToPos(y, "y", true);
        if (!(px >= left - 1 && px <= left + width + 1 && py >= top - 1 && py <= top + height + 1)) continue;
        const cell = Math.round((px - left) / ratio) + columns * Math.round((py - top) / ratio);
        if (taken[cell]) continue;
        taken[cell] = 1;
        if (s.line === "stem") {
          ctx.moveTo(px, top + height);
          ctx.lineTo(px, py);
        }
        if (s.marker) shape(ctx, s.marker, px, py, size);
      }
      ctx.strokeStyle = ctx.fillStyle = color(s.color);
      ctx.lineWidth = (xs.length > 400 ? 0.8 : 1.3) * ratio;
      if (s.marker && filled(s.marker)) ctx.fill();
      ctx.stroke();
    });
    ctx.restore();
  }

  private drawEndLabels(u: uPlot): void {
    const { ctx } = u;
    const ratio = uPlot.pxRatio;
    const { left, top, width, height } = u.bbox;
    const labels = this.spec.series
      .map((s, i) => ({ s, y: u.data[i + 1]![u.data[i + 1]!.length - 1] as number | null }))
      .filter((l) => l.y != null && !this.hidden.has(l.s.label))
      .map((l) => ({ ...l, at: u.valToPos(l.y!, "y", true) }))
      .sort((a, b) => a.at - b.at);
    // Pushed apart downwards, then back up from the bottom: no label covers another.
    const gap = 13 * ratio;
    labels.forEach((l, i) => (l.at = Math.max(l.at, i ? labels[i - 1]!.at + gap : top)));
    for (let i = labels.length - 1; i >= 0; i--) {
      labels[i]!.at = Math.min(labels[i]!.at, i === labels.length - 1 ? top + height : labels[i + 1]!.at - gap);
    }
    ctx.save();
    ctx.font = `${11 * ratio}px ${color("--mono")}`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    for (const l of labels) {
      ctx.fillStyle = color(l.s.color);
      ctx.fillText(shorten(ctx, l.s.label, 138 * ratio), left + width + 6 * ratio, l.at);
    }
    ctx.restore();
  }

  private drawLegend(): void {
    this.values = [];
    const entry = (label: string, mark: Child, title: string | undefined): HTMLElement => {
      const value = h("span", { class: "value" });
      this.values.push(value);
      return h(
        "button",
        {
          type: "button",
          "aria-pressed": String(!this.hidden.has(label)),
          title: title ?? `Show or hide ${label}`,
          onclick: () => {
            if (!this.hidden.delete(label)) this.hidden.add(label);
            this.draw();
          },
        },
        mark,
        h("span", null, label),
        value,
      );
    };
    this.legend.textContent = "";
    append(this.legend, [
      this.spec.series.map((s) => (s.quiet ? this.noEntry() : entry(s.label, swatch(s.marker ?? null, s.line, s.color, s.dash), s.title))),
      (this.spec.curves ?? []).map((c) => entry(c.label, swatch(null, "straight", c.color, c.dash), c.title)),
    ]);
  }

  private noEntry(): null {
    this.values.push(h("span"));
    return null;
  }

  private showValues(index: number | null): void {
    if (!this.u || this.spec.noLegend) return;
    const format = this.spec.formatY ?? tick;
    const x = index === null ? null : (this.u.data[0][index] ?? null);
    this.spec.series.forEach((_, i) => {
      const y = index === null ? null : this.u!.data[i + 1]![index];
      this.values[i]!.textContent = y == null ? "" : format(y);
    });
    (this.spec.curves ?? []).forEach((c, i) => {
      const y = x === null ? NaN : c.f(x);
      this.values[this.spec.series.length + i]!.textContent = Number.isFinite(y) ? format(y) : "";
    });
    this.legend.dataset["x"] = x === null ? "" : `${(this.spec.formatX ?? tick)(x)}`;
  }
}

/** A colour of the style sheet, as a ground: `#rrggbb` with little opacity. */
function tint(hex: string): string {
  return `${hex}26`;
}

function filled(marker: Marker): boolean {
  return marker === "dot" || marker === "up" || marker === "square";
}

function shape(ctx: CanvasRenderingContext2D | Path2D, marker: Marker, x: number, y: number, r: number): void {
  switch (marker) {
    case "dot":
    case "ring":
      ctx.moveTo(x + r * 0.9, y);
      ctx.arc(x, y, r * 0.9, 0, 2 * Math.PI);
      break;
    case "up":
      ctx.moveTo(x, y - r);
      ctx.lineTo(x + r, y + r * 0.8);
      ctx.lineTo(x - r, y + r * 0.8);
      ctx.closePath();
      break;
    case "down":
      ctx.moveTo(x, y + r);
      ctx.lineTo(x + r, y - r * 0.8);
      ctx.lineTo(x - r, y - r * 0.8);
      ctx.closePath();
      break;
    case "square":
      ctx.rect(x - r * 0.8, y - r * 0.8, r * 1.6, r * 1.6);
      break;
    case "diamond":
      ctx.moveTo(x, y - r);
      ctx.lineTo(x + r, y);
      ctx.lineTo(x, y + r);
      ctx.lineTo(x - r, y);
      ctx.closePath();
      break;
    case "cross":
      ctx.moveTo(x - r * 0.8, y - r * 0.8);
      ctx.lineTo(x + r * 0.8, y + r * 0.8);
      ctx.moveTo(x + r * 0.8, y - r * 0.8);
      ctx.lineTo(x - r * 0.8, y + r * 0.8);
      break;
  }
}

/** The mark of a legend entry: the same shape as in the plot. */
function swatch(marker: Marker | null, line: Series["line"], colorName: string, dash: number[] | undefined): SVGElement {
  const paint = `var(${colorName})`;
  const parts: Child[] = [];
  if (line && line !== "stem") {
    parts.push(svg("line", { x1: 0, y1: 6, x2: 16, y2: 6, stroke: paint, "stroke-width": 2, "stroke-dasharray": dash?.join(" ") }));
  }
  const paths: Record<Marker, string> = {
    up: "M8 2 12 10H4Z",
    down: "M8 10 12 2H4Z",
    dot: "M8 2.5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 1 1 0-7Z",
    ring: "M8 2.5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 1 1 0-7Z",
    square: "M5 3h6v6H5Z",
    diamond: "M8 2 12 6 8 10 4 6Z",
    cross: "M5 3 11 9M11 3 5 9",
  };
  if (line === "stem") parts.push(svg("path", { d: "M4 11V5M8 11V2M12 11V7", stroke: paint, "stroke-width": 2, fill: "none" }));
  else if (marker) {
    parts.push(svg("path", { d: paths[marker], fill: filled(marker) ? paint : "none", stroke: paint, "stroke-width": 1.3 }));
  }
  return svg("svg", { width: 16, height: 12, viewBox: "0 0 16 12", "aria-hidden": "true" }, parts);
}

function shorten(ctx: CanvasRenderingContext2D, text: string, width: number): string {
  if (ctx.measureText(text).width <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (ctx.measureText(text.slice(0, mid) + "…").width <= width) low = mid;
    else high = mid - 1;
  }
  return text.slice(0, low) + "…";
}
