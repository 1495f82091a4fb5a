// The span mode: how parallel the program is, which call sites its span is made of, the critical path from start to
// end, and the speedup that can be had.

import { Chart, type Series } from "../chart.ts";
import type { SpanData } from "../data.ts";
import { choice, code, h, replace, segmented, type Child } from "../dom.ts";
import { basename, count as plural, duration, exact, percent, si, trimZeros, visible } from "../format.ts";
import type { Mode, View } from "../modes.ts";
import { fact, facts, modeOf, problems, searchBox, sortHead } from "../run.ts";
import { COLUMNS, sites, sorted, type Column, type Site } from "./rows.ts";

/** Rows that are put into the document; a search finds the others. */
const ROWS_MAX = 400;

type Shape = "sites" | "path" | "speedup" | "source";

const SHAPES: readonly { value: Shape; label: string; title: string }[] = [
  { value: "sites", label: "Call sites", title: "What the work and the span are made of" },
  { value: "path", label: "Critical path", title: "The longest chain of things that follow each other, from start to end" },
  { value: "speedup", label: "Speedup", title: "What more processors can give" },
  { value: "source", label: "Source", title: "The lines around a call site" },
];

export const span: Mode = modeOf("span", "Span", (runs) => new SpanView(runs));

class SpanView implements View {
  readonly element = h("div", { class: "counts span" });
  readonly tabs = h("nav", { class: "views", "aria-label": "Views" });
  private readonly answer = h("section", { class: "answer", "aria-label": "Summary" });
  private readonly content = h("section", { class: "functions", "aria-label": "Call sites" });
  private readonly search = searchBox("Search places and functions…", () => this.draw());
  private readonly shapes = segmented("View", SHAPES, "sites", (v) => this.turn(v));
  private run: SpanData;
  private all: readonly Site[] = [];
  private shape: Shape = "sites";
  private every = false;
  private site: Site | null = null;
  private sort = { key: "share", descending: true };
  private chart: Chart | null = null;

  constructor(private readonly runs: readonly SpanData[]) {
    this.run = runs[0]!;
    const columns = segmented(
      "Columns",
      [
        { value: "main", label: "Main columns" },
        { value: "all", label: "All columns", title: "All of Cilkprof's: three measurements, on work and on span" },
      ],
      "main",
      (v) => {
        this.every = v === "all";
        columns.set(v);
        this.draw();
      },
    );
    const finder = h("div", { class: "finder" }, this.shapes, columns, this.search.box);
    this.element.append(this.answer, finder, this.content);
    this.show(0);
  }

  key(event: KeyboardEvent): void {
    this.search.key(event);
  }

  private show(index: number): void {
    this.run = this.runs[index]!;
    this.all = sites(this.run);
    this.site = sorted(this.all, "share", true)[0] ?? null;
    replace(this.answer, this.sentence(), this.facts(), problems(this.run.problems));
    this.draw();
  }

  private turn(shape: Shape): void {
    this.shape = shape;
    this.shapes.set(shape);
    this.draw();
  }

  private cost(n: number): string {
    if (this.run.unit === "ns") return n <= 0 ? "0" : duration(n);
    return si(n);
  }

  private sentence(): Child {
    const d = this.run;
    const top = this.site;
    const most = d.span > 0 ? d.work / d.span : 1;
    return h(
      "h1",
      null,
      "No number of processors makes this run more than ",
      h("strong", null, `${ratio(most)} times`),
      " faster",
      d.burdened_span > d.span ? ` (${ratio(d.work / d.burdened_span)} with what handing over tasks costs)` : null,
      top && d.spawns > 0 && top.share > 0 ? ["; ", code(place(top)), ` holds ${percent(top.share)} of the span itself`] : null,
      ".",
    );
  }

  private facts(): Child {
    const d = this.run;
    const more = [
      fact("CPU", duration(d.cpu_ns)),
      fact("Runtime", d.model),
      fact("Threads", exact(d.threads)),
    ];
    const others = [
      fact("Work", this.cost(d.work), "The cost of everything that the program did"),
      fact("Span", this.cost(d.span), "The longest chain of things that must follow each other"),
      fact("Burdened span", this.cost(d.burdened_span), "The span when every fork costs what handing over a task costs"),
      fact("Hand-over", this.cost(d.burden), "What it costs to give a task to another processor"),
      fact("Forks", exact(d.spawns)),
      fact("Costs", d.unit === "ns" ? "time" : d.unit),
      fact("Strands repaired", d.repaired > 0 ? exact(d.repaired) : null, "Time lost to preemption was taken off these"),
    ];
    return facts(this.runs, d, (i) => this.show(i), more, others);
  }

  private draw(): void {
    this.chart?.destroy();
    this.chart = null;
    switch (this.shape) {
      case "sites":
        return replace(this.content, this.table());
      case "path":
        return replace(this.content, this.path());
      case "speedup":
        return replace(this.content, this.speedup());
      case "source":
        return replace(this.content, this.source());
    }
  }

  private text(c: Column, s: Site): string {
    const v = c.value(s);
    switch (c.format) {
      case "cost":
        return this.cost(v);
      case "count":
        return exact(v);
      case "ratio":
        return ratio(v);
      case "share":
        return percent(v);
    }
  }

  private table(): Child {
    const query = this.search.input.value.trim().toLowerCase();
    const found = this.all.filter((s) => query === "" || s.text.includes(query));
    const shown = sorted(found, this.sort.key, this.sort.descending).slice(0, ROWS_MAX);
    const columns = COLUMNS.filter((c) => c.main || this.every);
    const head = (key: string, label: string, title: string, numeric: boolean): Child =>
      sortHead({ key, label, title, numeric }, this.sort, (sort) => {
        this.sort = sort;
        this.draw();
      });
    return [
      h(
        "div",
        { class: "scroller" },
        h(
          "table",
          { class: "facts-table wide" },
          h("thead", null, h("tr", null, head("place", "Call site", "Where it is, and what is invoked there", false), columns.map((c) => head(c.key, c.label, c.title, true)), h("th", { scope: "col" }, "What to do"))),
          h("tbody", null, shown.map((s) => this.row(s, columns))),
        ),
      ),
      h("p", { class: "note", role: "status" }, shown.length < found.length ? `${exact(shown.length)} of ${plural(found.length, "call site")}; search to see others` : plural(found.length, "call site")),
    ];
  }

  private row(s: Site, columns: readonly Column[]): Child {
    return h(
      "tr",
      null,
      h(
        "td",
        { title: visible(`${s.file}:${s.line}\n${s.callee} in ${s.function}`, 500) },
        h("button", { type: "button", class: "link", onclick: () => this.look(s) }, code(place(s))),
        h("span", { class: "about" }, ` ${s.kind} `),
        code(visible(s.callee || s.function, 60)),
      ),
      columns.map((c) => h("td", { class: "numeric", title: c.format === "cost" ? exact(c.value(s)) : null }, this.text(c, s))),
      h("td", null, s.advice ? visible(s.advice, 300) : ""),
    );
  }

  private look(s: Site): void {
    this.site = s;
    this.turn("source");
  }

  /** Steps as bars whose length is their share; what is not the site's own is said in words. */
  private path(): Child {
    const { path } = this.run;
    if (path.length === 0) return h("p", { class: "note" }, "Nothing ran in parallel: the whole run is the critical path.");
    const whole = Math.max(1, this.run.span);
    return h(
      "ol",
      { class: "path" },
      path.map(([index, length, own, strands]) => {
        const s = this.all[index];
        return h(
          "li",
          { vars: { "--w": String((100 * length) / whole) }, title: s ? visible(`${s.callee} in ${s.function}`, 300) : "" },
          h("span", { class: "bar", "aria-hidden": "true" }),
          h("span", { class: "numeric" }, this.cost(length)),
          h("span", { class: "numeric" }, percent(length / whole)),
          s ? h("button", { type: "button", class: "link", onclick: () => this.look(s) }, code(place(s))) : null,
          h("span", null, s ? code(visible(s.callee || s.function, 60)) : null),
          h("span", { class: "about" }, plural(strands, "strand"), own < length ? `, ${percent(own / Math.max(1, length))} of it its own` : null),
        );
      }),
    );
  }

  private speedup(): Child {
    const d = this.run;
    if (d.spawns === 0) return h("p", { class: "note" }, "Nothing ran in parallel, so more processors change nothing.");
    const processors = [...new Set([...d.bounds.map((b) => b[0]), ...d.measured.map((m) => m[0])])].sort((a, b) => a - b);
    const at = <T extends readonly [number, ...unknown[]]>(list: readonly T[], p: number): T | undefined => list.find((e) => e[0] === p);
    const series: Series[] = [
      { label: "perfect", y: processors, color: "--muted", line: "straight", dash: [2, 4], title: "As many times faster as there are processors" },
      { label: "at most", y: processors.map((p) => at(d.bounds, p)?.[2] ?? null), color: "--c1", line: "straight", title: "The smaller of processors and work over span: no scheduler exceeds it" },
      { label: "at least", y: processors.map((p) => at(d.bounds, p)?.[1] ?? null), color: "--c2", line: "straight", dash: [6, 3], title: "Work / (work/P + 1.7 (1 − 1/P) burdened span): what a work-stealing scheduler should reach" },
    ];
    if (d.measured.some((m) => m[2] !== null)) {
      series.push({ label: "measured", y: processors.map((p) => at(d.measured, p)?.[2] ?? null), color: "--c3", marker: "diamond", title: "Native runs by turns, the median of each" });
    }
    this.chart = new Chart({ label: "Speedup by number of processors", x: processors, series, logX: true, logY: true, xLabel: "processors", yLabel: "speedup", height: 360 });
    return [
      this.chart.element,
      h(
        "table",
        { class: "facts-table" },
        h("thead", null, h("tr", null, ["Processors", "At least", "At most", "Measured"].map((t) => h("th", { scope: "col", class: "numeric" }, t)))),
        h(
          "tbody",
          null,
          processors.map((p) => {
            const [bound, measured] = [at(d.bounds, p), at(d.measured, p)];
            const cells = [exact(p), bound ? ratio(bound[1]) : "", bound ? ratio(bound[2]) : "", measured?.[2] ? ratio(measured[2]) : measured ? duration(measured[1]) : ""];
            return h("tr", null, cells.map((c) => h("td", { class: "numeric" }, c)));
          }),
        ),
      ),
      d.measured.length === 0 ? h("p", { class: "note" }, "Nothing was measured: farsight span --measure 1,2 also runs the program natively.") : null,
    ];
  }

  private source(): Child {
    const s = this.site;
    if (!s) return h("p", { class: "note" }, "There is no call site to show.");
    const options = sorted(this.all, "share", true).map((o) => ({ value: String(o.index), label: `${percent(o.share)} ${place(o)} ${visible(o.callee, 60)}` }));
    const pick = choice("Call site", options, String(s.index), (v) => {
      this.site = this.all[Number(v)] ?? null;
      this.draw();
    });
    const e = this.run.excerpts.find((x) => x.routine === s.index);
    if (!e) return [pick, h("p", { class: "note" }, s.file ? "The source file could not be read when this page was made." : "No line is known: build the program with debug information.")];
    const lines = new Map(this.all.filter((o) => o.file === s.file).map((o) => [o.line, o]));
    return [
      pick,
      h("h3", null, code(visible(s.file, 200))),
      h(
        "pre",
        { class: "source", tabindex: 0, "aria-label": "Source lines" },
        e.lines.map((line, i) => {
          const number = e.start + i;
          const here = number === s.line;
          const on = lines.get(number);
          return h(
            "span",
            { class: here ? "src here" : "src", "aria-current": here ? "true" : null },
            h("span", { class: "lineno" }, `${on ? `${percent(on.share)} ` : ""}${here ? "▶" : ""}${number}`),
            h("code", null, line === "" ? "\n" : `${visible(line, 240)}\n`),
          );
        }),
      ),
    ];
  }
}

function ratio(v: number): string {
  if (!Number.isFinite(v)) return "–";
  return v >= 1000 ? si(v) : trimZeros(v.toFixed(v < 10 ? 2 : 1));
}

function place(s: Site): string {
  return s.file ? visible(`${basename(s.file)}:${s.line}`, 60) : visible(s.function || s.callee, 60);
}
