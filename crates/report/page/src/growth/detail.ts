// One routine: what was concluded about it in words, its plots, its input, its source.

import { Chart, Group, type Series, type Spec } from "../chart.ts";
import { CLASSES, growthLabel, growthWords } from "../classes.ts";
import { choice, code, h, replace, segmented, type Child } from "../dom.ts";
import { basename, count, exact, percent, si, tick, times, visible } from "../format.ts";
import { badge, exponentText } from "./cells.ts";
import { place, read } from "./forecast.ts";
import { guessed, ratios, trend, trendWords } from "./guess.ts";
import type { Fit, Routine } from "./model.ts";
import type { Row } from "./rows.ts";
import type { Session } from "./session.ts";
import { costSeries, fitCurves, seriesOf, subject, type Side, type Subject } from "./subject.ts";

const MAIN_PX = 340;
const SMALL_PX = 210;

/** A plot with its title; `spec` says what it draws now, `null` when there is nothing. */
interface Card {
  readonly element: HTMLElement;
  readonly chart: Chart;
  readonly note: HTMLElement;
  readonly spec: (s: Subject) => Spec | null;
}

export class Detail {
  readonly element = h("section", { class: "detail", "aria-label": "Routine", tabindex: -1 });
  private readonly head = h("div", { class: "detail-head" });
  private readonly facts = h("div", { class: "detail-facts" });
  private readonly source = h("div", { class: "source-box" });
  private readonly nothing = h("p", { class: "empty" }, "Select a routine to see how its cost grows.");
  private readonly content: HTMLElement;
  private readonly group = new Group();
  private readonly cards: Card[] = [];
  private readonly scaleX;
  private readonly scaleY;
  private readonly kind;
  private readonly guessPower: HTMLInputElement;
  private readonly guessClass: HTMLSelectElement;
  /** Plots beside the main one whose y axis is logarithmic, by title. */
  private readonly logged = new Set<string>(["Guess ratio"]);
  private row: Row | null = null;

  constructor(
    private readonly session: Session,
    back: () => void,
  ) {
    const { store } = session;
    const axes = [
      { value: "linear", label: "linear" },
      { value: "log", label: "log" },
    ] as const;
    this.scaleX = segmented("x axis", axes, "linear", (v) => store.set({ logX: v === "log" }));
    this.scaleY = segmented("y axis", axes, "linear", (v) => store.set({ logY: v === "log" }));
    this.kind = segmented(
      "Cost",
      [
        { value: "cumulative", label: "cumulative", title: "Costs with those of callees" },
        { value: "self", label: "self", title: "Costs without those of callees" },
      ] as const,
      "cumulative",
      (v) => store.set({ cost: v }),
    );
    this.guessPower = h("input", {
      type: "number", min: -2, max: 6, step: 0.05, "aria-label": "Exponent of g(n)",
      oninput: () => Number.isFinite(this.guessPower.valueAsNumber) && store.set({ guessPower: this.guessPower.valueAsNumber }),
    });
    this.guessClass = choice(
      "g(n)",
      [{ value: "", label: "as fitted" }, ...CLASSES.filter((c) => c.key !== "1").map((c) => ({ value: c.key, label: c.key === "n^K" ? "n^k, own k" : c.label }))],
      "",
      (v) => store.set({ guess: v }),
    );
    const cost = this.card("Cost", "", (s) => this.costSpec(s), true);
    this.content = h(
      "div",
      { class: "detail-content" },
      this.head,
      h(
        "div",
        { class: "toolbar" },
        this.kind,
        h("span", { class: "axis" }, "x", this.scaleX),
        h("span", { class: "axis" }, "y", this.scaleY),
        h("span", { class: "hint" }, "Drag to zoom all plots, double-click to reset"),
      ),
      cost,
      h(
        "div",
        { class: "cards" },
        this.card("Forecast", "Share of the run on larger inputs, 95 % band", (s) => this.forecastSpec(s)),
        this.card("Guess ratio", "Mean cost over g(n): level when g is its growth", (s) => this.guessSpec(s), false, h("span", { class: "guess" }, "g(n) = ", this.guessClass, this.guessPower)),
        this.card("Total cost", "Of all calls of a size: where the cost was spent", (s) => this.totalSpec(s)),
        this.card("Workload", "Calls of each size", (s) => this.workloadSpec(s)),
        this.card("Variance", "Of costs at equal size: what size does not explain", (s) => this.varianceSpec(s)),
        this.card("Input", "Where the cells of the input came from", (s) => this.inputSpec(s)),
      ),
      this.facts,
      this.source,
    );
    replace(
      this.element,
      h("button", { type: "button", class: "back", onclick: back }, "← Table"),
      this.nothing,
      this.content,
    );
    this.refresh();
  }

  /** Shows the selected routine; `null` content when none is. */
  refresh(): void {
    const state = this.session.store.get();
    this.row = this.session.row(state.selected);
    this.nothing.hidden = this.row !== null;
    this.content.hidden = this.row === null;
    if (!this.row) return;
    this.scaleX.set(state.logX ? "log" : "linear");
    this.scaleY.set(state.logY ? "log" : "linear");
    this.kind.set(state.cost);
    this.guessClass.value = state.guess;
    this.guessPower.hidden = state.guess !== "n^K";
    if (document.activeElement !== this.guessPower) this.guessPower.value = String(state.guessPower);
    const s = subject(this.session, this.row, state.cost === "self");
    this.drawHead(s);
    for (const card of this.cards) this.drawCard(card, s);
    this.drawFacts(s);
    this.drawSource(s);
  }

  /** The slider moved: only what shows the factor. */
  refreshForecast(): void {
    if (!this.row) return;
    const s = subject(this.session, this.row, this.session.store.get().cost === "self");
    this.drawCard(this.cards.find((c) => c.element.getAttribute("aria-label") === "Forecast")!, s);
  }

  private drawCard(card: Card, s: Subject): void {
    card.note.textContent = "";
    const spec = card.spec(s);
    card.element.classList.toggle("without", spec === null);
    if (spec) card.chart.update(spec);
  }

  private card(title: string, about: string, spec: (s: Subject) => Spec | null, main = false, extra: Child = null): HTMLElement {
    const note = h("p", { class: "note" });
    const chart = new Chart({
      label: title, x: [], series: [], logX: false, logY: false, xLabel: "", yLabel: "", height: main ? MAIN_PX : SMALL_PX,
    });
    const log = main
      ? null
      : h("button", {
          type: "button", class: "log", "aria-pressed": String(this.logged.has(title)), title: "Logarithmic y axis",
          onclick: () => {
            if (!this.logged.delete(title)) this.logged.add(title);
            log!.setAttribute("aria-pressed", String(this.logged.has(title)));
            this.refresh();
          },
        }, "log y");
    const element = h(
      "section",
      { class: main ? "card main" : "card", "aria-label": title },
      main ? null : h("header", null, h("h3", { title: about }, title), h("span", { class: "about" }, about), extra, log),
      chart.element,
      note,
    );
    this.cards.push({ element, chart, note, spec });
    return element;
  }

  private noteOf(title: string): HTMLElement {
    return this.cards.find((c) => c.element.getAttribute("aria-label") === title)!.note;
  }

  private base(s: Subject, title: string, yLabel: string): Omit<Spec, "series"> {
    const state = this.session.store.get();
    return {
      label: `${title} of ${visible(s.row.main.name, 80)} against input size`,
      x: s.x,
      logX: state.logX,
      logY: this.logged.has(title),
      xLabel: `input size n, cells of ${this.session.a.data.cell_bytes} bytes`,
      yLabel,
      height: SMALL_PX,
      group: this.group,
    };
  }

  private costSpec(s: Subject): Spec {
    const state = this.session.store.get();
    const breaks = s.sides.flatMap((side) => side.fit.pieces.slice(1).map((p) => ({ x: p.from, label: `${side.tag} regime from ${tick(p.from)}`.trim() })));
    const zero = state.logX && s.x.length > 0 && s.x[0] === 0;
    if (zero) this.noteOf("Cost").textContent = "Calls on input of size 0 have no place on a log axis and are not shown.";
    const what = state.cost === "self" ? "self cost" : "cost";
    return {
      ...this.base(s, "Cost", `${what} of a call, ${this.session.a.unit}`),
      logY: state.logY,
      height: MAIN_PX,
      series: costSeries(s),
      curves: fitCurves(s),
      lines: breaks,
    };
  }

  private forecastSpec(s: Subject): Spec | null {
    const sides = s.sides.filter((side) => side.routine.forecast);
    const note = this.noteOf("Forecast");
    if (sides.length === 0) {
      note.textContent = "Not forecast: its growth is unknown, and an unknown growth is not extrapolated.";
      return null;
    }
    const { factor } = this.session.store.get();
    const series: Series[] = sides.flatMap((side) => {
      const f = side.routine.forecast!;
      const color = side.tag === "B" ? "--run-b" : "--average";
      const t = side.tag && ` ${side.tag}`;
      return [
        { label: `share${t}`, y: f.share, color, line: "straight" as const, ...(side.tag === "B" ? { dash: [6, 3] } : {}) },
        { label: `high${t}`, y: f.high, color, quiet: true },
        { label: `low${t}`, y: f.low, color, quiet: true },
      ];
    });
    const { run, routine } = sides[0]!;
    const at = place(run.data.factors, factor);
    const f = routine.forecast!;
    note.textContent = `At ${times(factor)}: ${percent(read(f.share, at))} of the run (${percent(read(f.low, at))} to ${percent(read(f.high, at))}), ${si(read(f.cost, at))} ${run.unit}.`;
    return {
      label: "Forecast share of the run against input factor",
      x: run.data.factors,
      series,
      bands: sides.map((_, i) => [3 * i + 1, 3 * i + 2] as const),
      lines: [{ x: factor, label: times(factor) }],
      logX: true,
      logY: this.logged.has("Forecast"),
      xLabel: "times the input",
      yLabel: "share of the run",
      formatX: (v) => times(v),
      formatY: (v) => percent(v),
      yMax: Math.min(1, Math.max(...series.map((x) => Math.max(...Array.from(x.y, (v) => v ?? 0)))) * 1.1),
      height: SMALL_PX,
    };
  }

  private guessSpec(s: Subject): Spec {
    const state = this.session.store.get();
    const growth = guessed(state.guess, state.guessPower, s.sides[0]?.fit.growth ?? null);
    const first = s.sides[0]!;
    const ratio = ratios(first, growth, s.self);
    this.noteOf("Guess ratio").textContent = trendWords(trend(first.points.n, ratio), growth);
    return {
      ...this.base(s, "Guess ratio", `cost / ${growthLabel(growth)}`),
      series: seriesOf(s, `cost / ${growthLabel(growth)}`, (side) => ratios(side, growth, s.self) as number[], "dot", "--average"),
    };
  }

  private totalSpec(s: Subject): Spec {
    const recursive = !s.self && s.sides.some((side) => side.points.recursive);
    const total = (side: Side) => (s.self ? side.points.selfSum : side.points.sum);
    return {
      ...this.base(s, "Total cost", this.session.a.unit),
      series: [
        ...seriesOf(s, recursive ? "all calls" : "total", total, "dot", "--average"),
        ...(recursive ? seriesOf(s, "outermost calls", (side) => side.points.realSum, "square", "--worst", { title: "A recursion is counted once" }) : []),
      ],
    };
  }

  private workloadSpec(s: Subject): Spec {
    return {
      ...this.base(s, "Workload", "calls"),
      series: seriesOf(s, "calls", (side) => side.points.calls, "dot", "--average", s.sides.length > 1 ? {} : { line: "stem" }),
    };
  }

  private varianceSpec(s: Subject): Spec {
    return {
      ...this.base(s, "Variance", `${this.session.a.unit}²`),
      series: seriesOf(s, "variance", (side) => (s.self ? side.points.selfVariance : side.points.variance), "dot", "--average"),
    };
  }

  private inputSpec(s: Subject): Spec | null {
    const note = this.noteOf("Input");
    replace(note, s.sides.map((side) => composition(side.routine, side.tag)));
    if (s.sides.every((side) => !side.points.threadInduced)) return null;
    const part = (column: "threadInduced" | "external") => (side: Side) =>
      Array.from(side.points.n, (n, i) => (side.points[column]?.[i] ?? 0) / Math.max(1, n * side.points.calls[i]!));
    return {
      ...this.base(s, "Input", "share of the input"),
      formatY: percent,
      yMax: 1,
      height: SMALL_PX - 40,
      series: [
        ...seriesOf(s, "other threads", part("threadInduced"), "up", "--worst"),
        ...seriesOf(s, "kernel", part("external"), "square", "--best"),
      ],
    };
  }

  private drawHead(s: Subject): void {
    const { session } = this;
    const r = s.row.main;
    const starred = session.starred.has(s.row.id);
    replace(
      this.head,
      h(
        "div",
        { class: "title" },
        h("h2", null, code(visible(r.name, 600))),
        h("button", {
          type: "button", class: "starbutton", "aria-pressed": String(starred), title: "Star this routine (s)",
          "aria-label": "Star this routine",
          onclick: () => this.star(),
        }, starred ? "★" : "☆"),
      ),
      h(
        "p",
        { class: "where" },
        code(visible(r.object, 200)),
        r.address ? h("span", null, ` at ${r.address}`) : null,
        r.file ? h("span", null, " · ", code(visible(`${r.file}${r.line ? `:${r.line}` : ""}`, 200))) : null,
        r.mangled !== r.name ? h("span", { class: "mangled" }, " · ", code(visible(r.mangled, 160))) : null,
      ),
      s.sides.map((side) => verdict(side)),
      s.row.a && !s.row.b && session.b ? h("p", { class: "note" }, "This routine is not in run B.") : null,
      !s.row.a ? h("p", { class: "note" }, "This routine is only in run B.") : null,
    );
  }

  /** Marks or unmarks the routine shown. */
  star(): void {
    if (!this.row) return;
    this.session.star(this.row.id);
    this.refresh();
    this.element.dispatchEvent(new CustomEvent("starred", { bubbles: true }));
  }

  private drawFacts(s: Subject): void {
    const row = (label: string, title: string, value: (side: Side) => Child): HTMLElement =>
      h("tr", null, h("th", { scope: "row", title }, label), s.sides.map((side) => h("td", null, value(side))));
    const amount = (v: number): Child => h("span", { title: exact(v) }, si(v));
    replace(
      this.facts,
      h(
        "table",
        { class: "facts-table" },
        s.sides.length > 1 ? h("thead", null, h("tr", null, h("td"), s.sides.map((side) => h("th", { scope: "col" }, `Run ${side.tag}`)))) : null,
        h(
          "tbody",
          null,
          row("Share of the run", "Cumulative cost, recursion counted once", (x) => percent(x.routine.share)),
          row("Total cost", "Cumulative cost, recursion counted once", (x) => amount(x.routine.cost)),
          row("Self cost", "Without callees", (x) => amount(x.routine.costSelf)),
          row("Calls", "Activations", (x) => amount(x.routine.calls)),
          row("Input sizes", "Distinct sizes, and their range", (x) => `${exact(x.routine.pointCount)}, from ${si(x.routine.nMin)} to ${si(x.routine.nMax)}`),
          row("Exponent", "Of the best power law, with its 95 % confidence interval", (x) => interval(x.fit)),
          s.sides.some((x) => x.fit.alternatives.length > 0)
            ? row("Also possible", "Other classes that explain the data, with their probabilities", (x) => alternatives(x.fit))
            : null,
          s.sides.some((x) => x.fit.outliers > 0)
            ? row("Outliers", "Sizes that the curve does not explain and that were set aside", (x) => count(x.fit.outliers, "size"))
            : null,
          row("Threads", "Ids of the threads that ran it", (x) => threads(x.routine)),
        ),
      ),
      s.sides.filter((side) => side.fit.pieces.length > 1).map((side) => regimes(side)),
      s.sides.filter((side) => side.routine.byThread.length > 1).map((side) => threadTable(side)),
    );
  }

  private drawSource(s: Subject): void {
    const r = s.row.main;
    const e = r.excerpt;
    this.source.hidden = e === null;
    if (!e) return;
    replace(
      this.source,
      h("h3", null, "Source ", code(visible(basename(r.file), 80), { class: "about" })),
      h(
        "pre",
        { class: "source", tabindex: 0, "aria-label": "Source lines" },
        e.lines.map((line, i) => {
          const here = e.start + i === r.line;
          return h(
            "span",
            { class: here ? "src here" : "src", "aria-current": here ? "true" : null },
            h("span", { class: "lineno" }, `${here ? "▶" : ""}${e.start + i}`),
            h("code", null, line === "" ? "\n" : `${visible(line, 240)}\n`),
          );
        }),
      ),
    );
  }
}

/** The verdict in plain words. */
function verdict(side: Side): HTMLElement {
  const { fit } = side;
  const sure =
    fit.verdict === "confident"
      ? `Confident${probability(fit)}.`
      : fit.verdict === "tentative"
        ? `Tentative${probability(fit)}: ${visible(fit.reason, 400)}.`
        : `No class can be named: ${visible(fit.reason, 400)}.`;
  return h(
    "div",
    { class: "judgement" },
    side.tag ? h("span", { class: `tag ${side.tag.toLowerCase()}` }, side.tag) : null,
    badge(fit.growth, fit),
    h(
      "div",
      { class: "words" },
      fit.growth ? h("p", { class: "formula" }, "cost ≈ ", code(pretty(fit.formula))) : null,
      h("p", null, fit.growth ? `${growthWords(fit.growth)} ` : "", h("span", { class: "sure" }, sure.replace(/\.\.$/, "."))),
    ),
  );
}

/** How probable the class is; nothing measured is certain. */
function probability(fit: Fit): string {
  if (!Number.isFinite(fit.confidence)) return "";
  return fit.confidence > 0.99 ? ` (> ${percent(0.99)})` : ` (${percent(fit.confidence)})`;
}

/** Powers as people write them. */
function pretty(formula: string): string {
  return formula.replace(/n\^2(?![.\d])/g, "n²").replace(/n\^3(?![.\d])/g, "n³").replace(/2\^n/g, "2ⁿ").replace(/ - /g, " − ").replace(/sqrt n/g, "√n");
}

function interval(fit: Fit): string {
  if (!Number.isFinite(fit.exponent)) return "–";
  return `${exponentText(fit)}, 95 % interval ${fit.exponentLow.toFixed(2)} to ${fit.exponentHigh.toFixed(2)}`;
}

const THREADS_SHOWN = 24;

function threads(routine: Routine): string {
  const ids = routine.threads;
  if (ids.length === 0) return "not known";
  const shown = ids.slice(0, THREADS_SHOWN).join(", ");
  return `${exact(ids.length)}: ${shown}${ids.length > THREADS_SHOWN ? ", …" : ""}`;
}

function alternatives(fit: Fit): string {
  if (fit.alternatives.length === 0) return "–";
  return fit.alternatives.slice(0, 3).map(([c, p]) => `${pretty(c)} (${percent(p)})`).join(", ");
}

function threadTable(side: Side): HTMLElement {
  const list = [...side.routine.byThread].sort((x, y) => y[2] - x[2]);
  const whole = Math.max(1, list.reduce((sum, t) => sum + t[2], 0));
  return h(
    "table",
    { class: "regimes" },
    h("caption", null, `By thread${side.tag && `, run ${side.tag}`}`),
    h("thead", null, h("tr", null, ["Thread", "Calls", "Cost", "Of its cost"].map((t) => h("th", { scope: "col" }, t)))),
    h(
      "tbody",
      null,
      list.slice(0, THREADS_SHOWN).map(([id, calls, cost]) =>
        h("tr", null, h("td", null, String(id)), h("td", null, si(calls)), h("td", null, si(cost)), h("td", null, percent(cost / whole))),
      ),
    ),
  );
}

function regimes(side: Side): HTMLElement {
  return h(
    "table",
    { class: "regimes" },
    h("caption", null, `Regimes${side.tag && ` of run ${side.tag}`}`),
    h("thead", null, h("tr", null, ["From n", "To n", "Growth", "Cost"].map((t) => h("th", { scope: "col" }, t)))),
    h(
      "tbody",
      null,
      side.fit.pieces.map((p) =>
        h(
          "tr",
          null,
          h("td", null, si(p.from)),
          h("td", null, si(p.to)),
          h("td", null, badge(p.growth, null)),
          h("td", null, code(pretty(p.formula))),
        ),
      ),
    ),
  );
}

/** The input's composition as one bar with words: patterns tell the parts apart, not only colours. */
function composition(routine: Routine, tag: string): HTMLElement {
  const parts = [
    { label: "plain first reads", value: routine.firstReads, tone: "first" },
    { label: "written by other threads", value: routine.threadInduced, tone: "thread" },
    { label: "written by the kernel", value: routine.external, tone: "kernel" },
  ];
  const sum = parts.reduce((t, p) => t + p.value, 0);
  return h(
    "div",
    { class: "composition" },
    tag && h("span", { class: `tag ${tag.toLowerCase()}` }, tag),
    h("div", { class: "stack", "aria-hidden": "true" }, parts.map((p) => h("span", { class: p.tone, vars: { "flex-grow": String(sum > 0 ? p.value / sum : 0) } }))),
    h("ul", null, parts.map((p) => h("li", null, h("span", { class: `key ${p.tone}`, "aria-hidden": "true" }), `${percent(sum > 0 ? p.value / sum : 0)} ${p.label}`))),
    h("p", { class: "about" }, `${count(routine.calls, "call")} read ${si(sum)} cells in all.`),
  );
}
