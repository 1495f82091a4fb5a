// The whole program: who dominates as the input grows, how its growth is spread over classes, and how much the
// profile knows (Coppa et al., PLDI 2012, figure 7; CGO 2014, figures 15, 16, 18 and 19).

import { Chart, type Series, type Spec } from "../chart.ts";
import { CLASSES, pace } from "../classes.ts";
import { h, replace } from "../dom.ts";
import { count, exact, percent, tick, times, visible } from "../format.ts";
import { badge } from "./cells.ts";
import { place, shareAt } from "./forecast.ts";
import type { Routine, Run } from "./model.ts";
import type { Session } from "./session.ts";

const HEIGHT = 280;
const RACERS_MAX = 8;
const RACE_COLORS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8"];
const RACE_DASHES: (number[] | undefined)[] = [undefined, [8, 3], [2, 3], [8, 3, 2, 3], undefined, [8, 3], [2, 3], [8, 3, 2, 3]];

export class ProgramView {
  readonly element = h("section", { class: "program", "aria-label": "Whole program" });
  private charts: Chart[] = [];

  constructor(private readonly session: Session) {}

  refresh(): void {
    for (const chart of this.charts) chart.destroy();
    this.charts = [];
    const { a, b } = this.session;
    const runs = b ? [a, b] : [a];
    const metrics = b && a.data.metric !== b.data.metric ? (a.data.metric === "rms" ? { rms: a, trms: b } : { rms: b, trms: a }) : null;
    replace(
      this.element,
      this.race(a),
      this.classes(a),
      this.card("Routines with at least k input sizes", "Few sizes mean little evidence: routines far to the left cannot be fitted.", richness(runs)),
      this.card("Induced input", "Part of each routine's input that other threads or the kernel wrote: x % of the routines have at least y %.", induced(a)),
      metrics && this.card("Profile richness", "Sizes seen with trms over sizes seen with rms, less one: x % of the routines gain at least y.", gain(metrics.rms, metrics.trms)),
      metrics && this.card("Input volume", "One less the input that rms sees over that of trms: x % of the routines have at least y.", volume(metrics.rms, metrics.trms)),
      !metrics
        ? h("p", { class: "note wide" }, "With one run under each of the metrics rms and trms, profile richness and input volume are shown here too.")
        : null,
    );
  }

  private card(title: string, about: string, spec: Spec | null): HTMLElement {
    const header = h("header", null, h("h3", null, title), h("span", { class: "about" }, about));
    if (!spec) return h("section", { class: "card", "aria-label": title }, header, h("p", { class: "empty" }, "Nothing to show."));
    const chart = new Chart(spec);
    this.charts.push(chart);
    return h("section", { class: "card", "aria-label": title }, header, chart.element);
  }

  private race(run: Run): HTMLElement {
    const { factor } = this.session.store.get();
    const at = place(run.data.factors, factor);
    const leaders = racers(run, at);
    const card = this.card(
      "Who dominates as the input grows",
      "Forecast share of the run. Routines that hold everything at every size are left out.",
      leaders.length === 0
        ? null
        : {
            label: "Forecast shares of the leading routines against input factor",
            x: run.data.factors,
            series: leaders.map((r, i): Series => {
              const dash = RACE_DASHES[i];
              return {
                label: visible(r.name, 60),
                y: r.forecast!.share,
                color: RACE_COLORS[i]!,
                line: "straight",
                ...(dash ? { dash } : {}),
              };
            }),
            lines: factor > 1 ? [{ x: factor, label: times(factor) }] : [],
            logX: true,
            logY: false,
            xLabel: "times the input",
            yLabel: "share of the run",
            formatX: times,
            formatY: percent,
            height: 340,
            endLabels: true,
            noLegend: true,
          },
    );
    card.classList.add("wide");
    return card;
  }

  private classes(run: Run): HTMLElement {
    const keys = [...CLASSES.map((c) => c.key), "unknown"];
    const groups = keys
      .map((key) => ({ key, list: run.routines.filter((r) => (r.fit.growth?.class.key ?? "unknown") === key) }))
      .filter((g) => g.list.length > 0);
    const top = Math.max(1, ...groups.map((g) => g.list.length));
    const own = Math.max(1, run.routines.reduce((s, r) => s + r.costSelf, 0));
    return h(
      "section",
      { class: "card", "aria-label": "Growth classes" },
      h("header", null, h("h3", null, "Growth classes"), h("span", { class: "about" }, "Routines of each class, and the self cost that they hold. Click to list them.")),
      groups.length === 0
        ? h("p", { class: "empty" }, "Nothing to show.")
        : h(
            "table",
            { class: "classes" },
            h("thead", null, h("tr", null, ["Class", "Routines", "", "Self cost"].map((t) => h("th", { scope: "col" }, t)))),
            h(
              "tbody",
              null,
              groups.map(({ key, list }) => {
                const growth = key === "unknown" ? null : { class: CLASSES.find((c) => c.key === key)!, power: 0 };
                return h(
                  "tr",
                  null,
                  h("td", null, h("button", {
                    type: "button", class: "link", title: "List these routines",
                    onclick: () => this.session.store.set({ class: key, view: "routines" }),
                  }, key === "n^K" ? h("span", { class: "badge linear" }, "n^K") : badge(growth, null))),
                  h("td", { class: "numeric" }, exact(list.length)),
                  h("td", { class: "barcell" }, h("span", { class: `bar ${key === "n^K" ? "" : pace(growth)}` }, h("span", { class: "fill", vars: { width: `${(100 * list.length) / top}%` } }))),
                  h("td", { class: "numeric" }, percent(list.reduce((s, r) => s + r.costSelf, 0) / own)),
                );
              }),
            ),
          ),
      h("p", { class: "note" }, `${count(run.routines.length, "routine")}, ${percent(run.data.thread_induced_share)} of all input written by other threads, ${percent(run.data.external_share)} by the kernel.`),
    );
  }
}

/** Those with the largest shares now or then, without those that stay at the top throughout. */
function racers(run: Run, at: { i: number; t: number }): Routine[] {
  const full = (r: Routine): boolean => r.forecast!.share[0]! > 0.97 && shareAt(r, at) > 0.97;
  const peak = (r: Routine): number => Math.max(r.forecast!.share[0]!, shareAt(r, at));
  return run.routines
    .filter((r) => r.forecast && !full(r) && peak(r) > 0.002)
    .sort((x, y) => peak(y) - peak(x))
    .slice(0, RACERS_MAX);
}

const RUN_MARK = [
  { color: "--average", dash: undefined },
  { color: "--run-b", dash: [6, 3] },
];

/** For k on the x axis, the part of the routines that have at least k of something. */
export function atLeast(values: readonly number[]): { k: number[]; part: number[] } {
  const sorted = [...values].sort((x, y) => x - y);
  const k: number[] = [];
  const part: number[] = [];
  sorted.forEach((v, i) => {
    if (i === 0 || v !== sorted[i - 1]) {
      k.push(v);
      part.push((sorted.length - i) / sorted.length);
    }
  });
  return { k, part };
}

function richness(runs: readonly Run[]): Spec | null {
  const steps = runs.map((run) => atLeast(run.routines.filter((r) => r.pointCount > 0).map((r) => r.pointCount)));
  const x = [...new Set(steps.flatMap((s) => s.k))].sort((p, q) => p - q);
  if (x.length === 0) return null;
  const value = (s: { k: number[]; part: number[] }, k: number): number => s.part[s.k.findIndex((v) => v >= k)] ?? 0;
  return {
    label: "Part of the routines that have at least k input sizes",
    x,
    series: steps.map((s, i): Series => {
      const mark = RUN_MARK[i]!;
      return {
        label: runs.length > 1 ? `run ${i ? "B" : "A"}` : "routines",
        y: x.map((k) => value(s, k)),
        color: mark.color,
        line: "straight",
        ...(mark.dash ? { dash: mark.dash } : {}),
      };
    }),
    logX: true,
    logY: false,
    xLabel: "k, distinct input sizes",
    yLabel: "routines",
    formatX: tick,
    formatY: percent,
    yMax: 1,
    height: HEIGHT,
    noLegend: runs.length === 1,
  };
}

/** Values in descending order against the part of the routines that have at least as much. */
function descending(values: readonly number[]): { x: number[]; y: number[] } {
  const sorted = [...values].sort((p, q) => q - p);
  return { x: sorted.map((_, i) => (i + 1) / sorted.length), y: sorted };
}

function induced(run: Run): Spec | null {
  const parts = (value: (r: Routine) => number): number[] =>
    run.routines
      .map((r) => ({ r, sum: r.firstReads + r.threadInduced + r.external }))
      .filter((p) => p.sum > 0)
      .map((p) => value(p.r) / p.sum);
  const thread = descending(parts((r) => r.threadInduced));
  const kernel = descending(parts((r) => r.external));
  if (thread.x.length === 0 || (thread.y[0] === 0 && kernel.y[0] === 0)) return null;
  return {
    label: "Induced input per routine",
    x: thread.x,
    series: [
      { label: "other threads", y: thread.y, color: "--worst", line: "straight" },
      { label: "kernel", y: kernel.y, color: "--best", line: "straight", dash: [6, 3] },
    ],
    logX: false,
    logY: false,
    xLabel: "routines",
    yLabel: "share of the input",
    formatX: percent,
    formatY: percent,
    yMax: 1,
    height: HEIGHT,
  };
}

function pairs(rms: Run, trms: Run): [Routine, Routine][] {
  return rms.routines.flatMap((r) => {
    const t = trms.byId.get(r.id);
    return t ? [[r, t] as [Routine, Routine]] : [];
  });
}

function gain(rms: Run, trms: Run): Spec | null {
  const { x, y } = descending(pairs(rms, trms).filter(([r]) => r.pointCount > 0).map(([r, t]) => (t.pointCount - r.pointCount) / r.pointCount));
  if (x.length === 0) return null;
  return {
    label: "Profile richness of trms over rms", x,
    series: [{ label: "richness", y, color: "--average", line: "straight" }],
    logX: false, logY: false, xLabel: "routines", yLabel: "richness", formatX: percent, height: HEIGHT, noLegend: true,
  };
}

function volume(rms: Run, trms: Run): Spec | null {
  const cells = (r: Routine): number => r.firstReads + r.threadInduced + r.external;
  const { x, y } = descending(pairs(rms, trms).filter(([, t]) => cells(t) > 0).map(([r, t]) => Math.max(0, 1 - cells(r) / cells(t))));
  if (x.length === 0) return null;
  return {
    label: "Input volume of trms over rms", x,
    series: [{ label: "volume", y, color: "--average", line: "straight" }],
    logX: false, logY: false, xLabel: "routines", yLabel: "volume", formatX: percent, yMax: 1, height: HEIGHT, noLegend: true,
  };
}
