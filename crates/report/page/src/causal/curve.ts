// One curve as a drawing: what the program gains over how much faster the target is, with a band for the 95 %
// intervals, and the single experiments behind it.

import type { CausalData, CausalResult } from "../data.ts";
import { svg, type Child } from "../dom.ts";
import { percent } from "../format.ts";

export interface Frame {
  readonly width: number;
  readonly height: number;
  /** Gains at the bottom and at the top. */
  readonly low: number;
  readonly high: number;
  readonly axes: boolean;
}

/** One experiment: by how much the target was faster, and the program against the baselines' average. */
export interface Dot {
  readonly speedup: number;
  readonly gain: number;
  readonly startMs: number;
}

/** The experiments about a result's target, at its point. */
export function dots(run: CausalData, result: CausalResult): Dot[] {
  const { target, permille, start_ms, period_ns } = run.experiments;
  const periods = period_ns[result.point] ?? [];
  let sum = 0;
  let n = 0;
  for (const [i, p] of periods.entries()) {
    if (permille[i] === 0 && p !== null) {
      sum += p;
      n += 1;
    }
  }
  if (n === 0) return [];
  const base = sum / n;
  const out: Dot[] = [];
  for (const [i, p] of periods.entries()) {
    if (p === null || target[i] !== result.target) continue;
    out.push({ speedup: permille[i]! / 1000, gain: 1 - p / base, startMs: start_ms[i]! });
  }
  return out;
}

/** Gains that all curves fit into, on round numbers. */
export function range(results: readonly CausalResult[]): [number, number] {
  let low = -0.1;
  let high = 0.1;
  for (const r of results) {
    for (const [, gain, ciLow, ciHigh] of r.levels) {
      low = Math.min(low, Math.max(-1, ciLow ?? gain));
      high = Math.max(high, Math.min(1, ciHigh ?? gain));
    }
  }
  return [Math.floor(low * 10) / 10, Math.ceil(high * 10) / 10];
}

export function draw(result: CausalResult, frame: Frame, label: string, experiments: readonly Dot[] = []): SVGElement {
  const left = frame.axes ? 46 : 4;
  const bottom = frame.axes ? 34 : 4;
  const x = (s: number): number => left + s * (frame.width - left - 8);
  const y = (g: number): number => {
    const inside = Math.min(frame.high, Math.max(frame.low, g));
    return 6 + ((frame.high - inside) / (frame.high - frame.low)) * (frame.height - bottom - 6);
  };
  const at = (s: number, g: number): string => `${x(s).toFixed(1)},${y(g).toFixed(1)}`;
  const levels = result.levels;
  const known = levels.filter((l) => l[2] !== null && l[3] !== null);
  const upper = known.map((l) => at(l[0], l[3]!));
  const lower = known.map((l) => at(l[0], l[2]!)).reverse();
  const parts: Child[] = [];
  if (frame.axes) {
    const step = frame.high - frame.low > 1 ? 0.5 : frame.high - frame.low > 0.4 ? 0.2 : 0.1;
    for (let g = Math.ceil(frame.low / step) * step; g <= frame.high + 1e-9; g += step) {
      parts.push(svg("line", { class: "grid", x1: left, x2: frame.width - 8, y1: y(g), y2: y(g) }));
      parts.push(svg("text", { class: "axis", x: left - 6, y: y(g) + 4, "text-anchor": "end" }, percent(Math.abs(g) < 1e-9 ? 0 : g)));
    }
    for (const s of [0, 0.25, 0.5, 0.75, 1]) {
      parts.push(svg("text", { class: "axis", x: x(s), y: frame.height - bottom + 16, "text-anchor": s === 1 ? "end" : "middle" }, percent(s)));
    }
    parts.push(svg("text", { class: "axis", x: x(0.5), y: frame.height - 3, "text-anchor": "middle" }, "target faster by"));
  }
  parts.push(svg("line", { class: "zero", x1: left, x2: frame.width - 8, y1: y(0), y2: y(0) }));
  if (known.length > 0) parts.push(svg("polygon", { class: "band", points: [at(0, 0), ...upper, ...lower].join(" ") }));
  for (const d of experiments) {
    // Beside each other, in the order of time, so that drift can be seen.
    const spread = (d.startMs / Math.max(1, experiments[experiments.length - 1]!.startMs) - 0.5) * 0.08;
    const clipped = d.gain < frame.low || d.gain > frame.high;
    parts.push(svg("circle", { class: clipped ? "dot clipped" : "dot", cx: x(Math.min(1, Math.max(0, d.speedup + spread))), cy: y(d.gain), r: 2.5 }));
  }
  parts.push(svg("polyline", { class: "curve", points: [at(0, 0), ...levels.map((l) => at(l[0], l[1]))].join(" ") }));
  for (const l of levels) parts.push(svg("circle", { class: "mark", cx: x(l[0]), cy: y(l[1]), r: frame.axes ? 4 : 2.5 }));
  return svg("svg", { class: `gain ${result.verdict.replace(" ", "-")}`, viewBox: `0 0 ${frame.width} ${frame.height}`, role: "img", "aria-label": label }, parts);
}
