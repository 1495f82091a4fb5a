// The idle mode: where core time went, and which contexts answer for the idleness of other cores.

import type { Five, IdleData } from "../data.ts";
import { code, h, replace, segmented, type Child } from "../dom.ts";
import { duration, exact, percent, visible } from "../format.ts";
import type { Mode, View } from "../modes.ts";
import { fact, facts, modeOf, problems } from "../run.ts";
import { answerable, bottomUp, effort, flat, hotPath, topDown, type Item } from "./tree.ts";

/** Rows that are put into the document at once. */
const ROWS_MAX = 600;
/** Widest level of the flame graph, and boxes narrower than this are not drawn. */
const FLAME_LEVELS = 40;
const FLAME_LEAST = 0.002;

type Shape = "top-down" | "bottom-up" | "flat" | "flame" | "locks" | "source";
type Key = "name" | "effort" | "wasted" | "idle" | "overhead" | "work" | "blocked" | "ownIdle" | "ownOverhead" | "ownWork";

const SHAPES: readonly { value: Shape; label: string; title: string }[] = [
  { value: "top-down", label: "Top down", title: "Calling contexts from main on" },
  { value: "bottom-up", label: "Bottom up", title: "Functions, and who called them" },
  { value: "flat", label: "Flat", title: "Functions, with what they called" },
  { value: "flame", label: "Flame graph", title: "Widths are work, overhead and idleness" },
  { value: "locks", label: "Locks", title: "Who waited, and because of whom" },
  { value: "source", label: "Source", title: "Lines that time went to" },
];

const COLUMNS: readonly { key: Key; label: string; title: string; value: (i: Item) => number }[] = [
  { key: "idle", label: "Idle", title: "Idle core time for which it answers, with what it called", value: (i) => i.all[3] },
  { key: "ownIdle", label: "self", title: "Idle core time for which it answers itself", value: (i) => i.own[3] },
  { key: "overhead", label: "Overhead", title: "Synchronization and scheduling, with what it called", value: (i) => i.all[1] + i.all[2] },
  { key: "ownOverhead", label: "self", title: "Synchronization and scheduling of its own", value: (i) => i.own[1] + i.own[2] },
  { key: "work", label: "Work", title: "CPU time in the program's own code, with what it called", value: (i) => i.all[0] },
  { key: "ownWork", label: "self", title: "CPU time of its own", value: (i) => i.own[0] },
  { key: "effort", label: "Effort", title: "Work, overhead and idleness, with what it called: its share of the whole program's", value: (i) => effort(i.all) },
  { key: "wasted", label: "Wasted", title: "Idleness and overhead as a share of its own effort, with what it called", value: (i) => i.all[1] + i.all[2] + i.all[3] },
  { key: "blocked", label: "Blocked", title: "Time that threads waited here", value: (i) => i.all[4] },
];

const CLASSES = ["work", "sync", "schedule", "idle", "neutral"] as const;
const KINDS = ["", "inlined", "loop", "task", "thread", ""] as const;

export const idle: Mode = modeOf("idle", "Idleness", (runs) => new IdleView(runs));

class IdleView implements View {
  readonly element = h("div", { class: "counts idleness" });
  readonly tabs = h("nav", { class: "views", "aria-label": "Views" });
  private readonly answer = h("section", { class: "answer", "aria-label": "Summary" });
  private readonly content = h("section", { class: "functions", "aria-label": "Contexts" });
  private readonly open = new Set<Item>();
  private run: IdleData;
  private whole = 1;
  private shape: Shape = "top-down";
  private physical = false;
  private sort: { key: Key; descending: boolean } = { key: "idle", descending: true };
  private roots: Item[] = [];
  private zoom: Item | null = null;
  private advice = new Map<string, [string, string]>();

  constructor(private readonly runs: readonly IdleData[]) {
    this.run = runs[0]!;
    const shapes = segmented("View", SHAPES, this.shape, (v) => {
      this.shape = v;
      shapes.set(v);
      this.build();
    });
    const projection = segmented(
      "Call paths",
      [
        { value: "logical", label: "Logical", title: "Tasks below their creators, no scheduler frames" },
        { value: "physical", label: "Physical", title: "What was on the stacks" },
      ],
      "logical",
      (v) => {
        this.physical = v === "physical";
        projection.set(v);
        this.build();
      },
    );
    const hot = h("button", { type: "button", title: "Follow the child with at least half of the value", onclick: () => this.hot() }, "Hot path");
    this.element.append(this.answer, h("div", { class: "finder" }, shapes, projection, hot), this.content);
    this.show(0);
  }

  key(event: KeyboardEvent): void {
    if (event.key === "h") this.hot();
  }

  private show(index: number): void {
    this.run = this.runs[index]!;
    this.whole = Math.max(1, this.run.cores * this.run.span_ns);
    this.advice = new Map(this.run.advice.map(([name, word, sentence]) => [name, [word, sentence]]));
    replace(this.answer, this.sentence(), this.facts(), problems(this.run.problems));
    this.build();
  }

  private share(ns: number): string {
    return percent(Math.max(0, ns) / this.whole);
  }

  private sentence(): Child {
    const { total } = this.run;
    const worst = answerable(this.run, this.run.logical);
    return h(
      "h1",
      null,
      "Cores were idle for ",
      h("strong", null, this.share(total[3])),
      " of the time and busy with overhead for ",
      h("strong", null, this.share(total[1] + total[2])),
      worst && total[3] > 0
        ? ["; ", code(visible(worst[0], 60)), ` answers for ${percent(worst[1] / total[3])} of the idleness`]
        : null,
      ".",
    );
  }

  private facts(): Child {
    const d = this.run;
    const more = [
      fact("CPU", duration(d.cpu_ns)),
      fact("Cores", exact(d.cores)),
      fact("Threads", exact(d.threads)),
      fact("Samples", `${exact(d.samples)} (${exact(d.lost)} lost)`),
    ];
    const others = [
      fact("Work", this.share(d.total[0])),
      fact("Synchronization", this.share(d.total[1])),
      fact("Scheduling", this.share(d.total[2])),
      fact("Idle", this.share(d.total[3])),
      fact("Nobody running", this.share(d.nobody_ns), "No thread worked, or other programs had the cores"),
      fact("Preempted", d.preempted_ns > this.whole / 50 ? this.share(d.preempted_ns) : null, "Part of nobody running: others had the core"),
      fact("Blocked", duration(d.total[4])),
      fact("Tasks below their creator", d.stitched === null ? null : percent(d.stitched)),
    ];
    return facts(this.runs, d, (i) => this.show(i), more, others);
  }

  private build(): void {
    const tree = this.physical ? this.run.physical : this.run.logical;
    this.open.clear();
    this.zoom = null;
    this.roots = this.shape === "bottom-up" ? bottomUp(this.run, tree) : this.shape === "flat" ? flat(this.run, tree) : topDown(this.run, tree);
    if (this.shape === "top-down") for (const i of hotPath(this.roots, (v) => v[3])) this.open.add(i);
    this.draw();
  }

  private hot(): void {
    const column = COLUMNS.find((c) => c.key === this.sort.key);
    const value = (v: Five): number => (column ? column.value({ own: v, all: v } as Item) : effort(v));
    for (const i of hotPath(this.roots, value)) this.open.add(i);
    this.draw();
  }

  private draw(): void {
    if (this.shape === "locks") return replace(this.content, this.locks());
    if (this.shape === "source") return replace(this.content, this.source());
    if (this.shape === "flame") return replace(this.content, this.flame());
    replace(this.content, this.table());
  }

  private ordered(items: readonly Item[]): Item[] {
    const column = COLUMNS.find((c) => c.key === this.sort.key);
    const sign = this.sort.descending ? -1 : 1;
    const value = (c: (typeof COLUMNS)[number], i: Item): number => (c.key === "wasted" ? c.value(i) / Math.max(1, effort(i.all)) : c.value(i));
    return [...items].sort((a, b) => {
      const d = column ? value(column, a) - value(column, b) : a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
      return d !== 0 ? sign * d : effort(b.all) - effort(a.all) || (a.name < b.name ? -1 : 1);
    });
  }

  private table(): Child {
    const rows: Child[] = [];
    const visit = (items: readonly Item[], depth: number): void => {
      for (const i of this.ordered(items)) {
        if (rows.length >= ROWS_MAX) return;
        if (effort(i.all) + i.all[4] <= 0) continue;
        rows.push(this.row(i, depth));
        if (this.open.has(i)) visit(i.children, depth + 1);
      }
    };
    visit(this.roots, 0);
    const head = (key: Key, label: string, title: string, numeric: boolean): Child =>
      h(
        "th",
        { scope: "col", class: numeric ? "numeric" : "", "aria-sort": this.sort.key === key ? (this.sort.descending ? "descending" : "ascending") : null },
        h(
          "button",
          {
            type: "button",
            title,
            onclick: () => {
              this.sort = { key, descending: this.sort.key === key ? !this.sort.descending : key !== "name" };
              this.draw();
            },
          },
          label,
        ),
      );
    return [
      h(
        "table",
        { class: "facts-table wide idle-table" },
        h("thead", null, h("tr", null, head("name", "Context", "The function, loop or thread", false), COLUMNS.map((c) => head(c.key, c.label, c.title, true)), h("th", { scope: "col" }, "Advice"))),
        h("tbody", null, rows),
      ),
      rows.length >= ROWS_MAX ? h("p", { class: "note" }, `The first ${ROWS_MAX} rows are shown.`) : null,
    ];
  }

  private row(i: Item, depth: number): Child {
    const parent = i.children.some((c) => effort(c.all) + c.all[4] > 0);
    const isOpen = this.open.has(i);
    const toggle = (): void => {
      if (isOpen) this.open.delete(i);
      else this.open.add(i);
      this.draw();
    };
    const advice = i.kind === 2 ? undefined : this.advice.get(i.name);
    return h(
      "tr",
      { class: `class-${CLASSES[i.class] ?? "neutral"}` },
      h(
        "td",
        { class: "context", vars: { "--depth": String(depth) } },
        parent ? h("button", { type: "button", class: "twisty", "aria-expanded": String(isOpen), "aria-label": isOpen ? "Close" : "Open", onclick: toggle }, isOpen ? "▾" : "▸") : h("span", { class: "twisty" }),
        code(visible(i.name, 120), { title: i.place }),
        KINDS[i.kind] ? h("span", { class: "kind" }, ` ${KINDS[i.kind]}`) : null,
      ),
      COLUMNS.map((c) => {
        const ns = c.value(i);
        return h("td", { class: "numeric", title: duration(ns) }, ns <= 0 ? "" : this.cell(c.key, ns, i));
      }),
      h("td", { title: advice?.[1] ?? "" }, advice?.[0] ?? ""),
    );
  }

  private cell(key: Key, ns: number, i: Item): string {
    if (key === "blocked") return duration(ns);
    if (key === "effort") return percent(ns / Math.max(1, effort(this.run.total)));
    if (key === "wasted") return percent(ns / Math.max(1, effort(i.all)));
    return this.share(ns);
  }

  /** Boxes as wide as their effort; each is coloured by what it is most of, which its title says in words. */
  private flame(): Child {
    const boxes: Child[] = [];
    let deepest = 0;
    const zoomed = this.zoom ? [this.zoom] : this.roots;
    const sum = zoomed.reduce((s, r) => s + effort(r.all), 0) || 1;
    const visit = (items: readonly Item[], left: number, level: number): void => {
      let x = left;
      for (const i of [...items].sort((a, b) => effort(b.all) - effort(a.all))) {
        const width = effort(i.all) / sum;
        if (width < FLAME_LEAST || level >= FLAME_LEVELS) continue;
        deepest = Math.max(deepest, level);
        const over = i.all[1] + i.all[2];
        const most = i.all[3] >= i.all[0] && i.all[3] >= over ? "idle" : over > i.all[0] ? "overhead" : "work";
        boxes.push(
          h(
            "button",
            {
              type: "button",
              class: `box most-${most}`,
              vars: { "--x": String(x * 100), "--w": String(width * 100), "--y": String(level) },
              title: `${i.name}\n${this.share(i.all[0])} work, ${this.share(over)} overhead, ${this.share(i.all[3])} idle\n${i.place}`,
              onclick: () => {
                this.zoom = this.zoom === i ? null : i;
                this.draw();
              },
            },
            visible(i.name, 60),
          ),
        );
        visit(i.children, x, level + 1);
        x += width;
      }
    };
    visit(zoomed, 0, 0);
    return [
      h("p", { class: "legend" }, h("span", { class: "swatch most-work" }, "mostly work"), h("span", { class: "swatch most-overhead" }, "mostly overhead"), h("span", { class: "swatch most-idle" }, "mostly idleness"), this.zoom ? h("button", { type: "button", onclick: () => ((this.zoom = null), this.draw()) }, "Whole program") : null),
      h("div", { class: "flame", vars: { "--levels": String(deepest + 1) } }, boxes),
    ];
  }

  private locks(): Child {
    const { locks } = this.run;
    if (locks.length === 0) return h("p", { class: "note" }, "No thread waited for a lock, a condition or a futex.");
    const path = (names: readonly string[]): Child => code(visible(names.slice(-3).join(" › "), 120), { title: names.join(" › ") });
    return h(
      "table",
      { class: "facts-table wide" },
      h("thead", null, h("tr", null, ["Object", "Waited", "Waits", "Acquisitions", "Hand-over", "Longest wait in", "Because of"].map((t) => h("th", { scope: "col" }, t)))),
      h(
        "tbody",
        null,
        locks.map((l) =>
          h(
            "tr",
            null,
            h("td", null, `${l.kind} ${l.address}`),
            h("td", { class: "numeric" }, duration(l.wait_ns)),
            h("td", { class: "numeric" }, exact(l.contended)),
            h("td", { class: "numeric" }, l.acquisitions ? exact(l.acquisitions) : "not seen"),
            h("td", { class: "numeric" }, l.handed_over_ns ? duration(l.handed_over_ns) : ""),
            h("td", null, l.waiter.length ? path(l.waiter) : "?"),
            h("td", null, h("ul", { class: "holders" }, l.holders.slice(0, 8).map(([names, ns]) => h("li", null, `${duration(ns)} `, path(names))))),
          ),
        ),
      ),
    );
  }

  private source(): Child {
    // Files that could be read first: those of libraries mostly cannot.
    const hasText = (s: (typeof this.run.sources)[number]): boolean => s.lines.some(([, , , text]) => text !== "");
    const sources = [...this.run.sources.filter(hasText), ...this.run.sources.filter((s) => !hasText(s))];
    if (sources.length === 0) return h("p", { class: "note" }, "No line is known: build the program with debug information.");
    return sources.map((s) =>
      h(
        "details",
        { open: s === sources[0] },
        h("summary", null, code(visible(s.file, 200))),
        h(
          "table",
          { class: "facts-table wide source" },
          h("thead", null, h("tr", null, ["Line", "Work", "Idle", ""].map((t) => h("th", { scope: "col" }, t)))),
          h("tbody", null, s.lines.map(([line, work, idleNs, text]) => h("tr", null, h("td", { class: "numeric" }, String(line)), h("td", { class: "numeric" }, this.share(work)), h("td", { class: "numeric" }, this.share(idleNs)), h("td", null, text ? h("code", null, visible(text, 200)) : null)))),
        ),
      ),
    );
  }
}
