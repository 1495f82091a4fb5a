// The count mode: what was executed, in all, by function and by thread. Counts are exact, so nothing is rounded away:
// every cell shows all its digits.

import type { CountData } from "../data.ts";
import { code, h, replace, type Child } from "../dom.ts";
import { basename, count as plural, duration, exact, moment, percent, visible } from "../format.ts";
import type { Mode, View } from "../modes.ts";
import { fact, facts, modeOf, problems, searchBox, sortHead } from "../run.ts";
import { COLUMNS, rows, sorted, type Row, type SortKey } from "./rows.ts";

/** Rows that are put into the document; a search finds the others. */
const ROWS_MAX = 500;
const TOTALS = ["Instructions", "Blocks", "Loads", "Stores", "Calls"] as const;

export const counts: Mode = modeOf("count", "Counts", (runs) => new CountView(runs));

class CountView implements View {
  readonly element = h("div", { class: "counts" });
  readonly tabs = h("nav", { class: "views", "aria-label": "Views" });
  private readonly answer = h("section", { class: "answer", "aria-label": "Summary" });
  private readonly body = h("tbody");
  private readonly head = h("tr");
  private readonly note = h("p", { class: "note", role: "status" });
  private readonly search = searchBox("Search functions and objects…", () => this.fill());
  private run: CountData;
  private all: readonly Row[] = [];
  private sort: { key: SortKey; descending: boolean } = { key: "own", descending: true };

  constructor(private readonly runs: readonly CountData[]) {
    this.run = runs[0]!;
    const functions = h(
      "section",
      { class: "functions", "aria-label": "Functions" },
      h("div", { class: "finder" }, this.search.box, this.note),
      h("table", { class: "facts-table wide" }, h("thead", null, this.head), this.body),
    );
    this.element.append(this.answer, functions);
    this.show(0);
  }

  key(event: KeyboardEvent): void {
    this.search.key(event);
  }

  private show(index: number): void {
    this.run = this.runs[index]!;
    this.all = rows(this.run);
    replace(this.answer, this.sentence(), this.facts(), this.threads(), problems(this.run.problems));
    this.drawHead();
    this.fill();
  }

  private sentence(): Child {
    const instructions = this.run.total[0];
    const top = sorted(this.all, "own", true)[0];
    return h(
      "h1",
      null,
      h("strong", null, exact(instructions)),
      " instructions",
      this.run.threads > 1 ? ` in ${plural(this.run.threads, "thread")}` : null,
      top ? ["; ", code(visible(top.name, 60)), ` executed ${percent(top.own / instructions)} of them itself`] : null,
      ".",
    );
  }

  private facts(): Child {
    const d = this.run;
    const more = [
      fact("CPU", duration(d.cpu_ns)),
      fact("Started", moment(d.started_unix_ms)),
    ];
    const totals = [TOTALS.map((name, i) => fact(name, exact(d.total[i]!))), fact("Threads", exact(d.threads))];
    return facts(this.runs, d, (i) => this.show(i), more, totals);
  }

  private threads(): Child {
    const threads = this.run.by_thread;
    if (threads.length < 2) return null;
    return h(
      "details",
      null,
      h("summary", null, "By thread"),
      h(
        "table",
        { class: "facts-table" },
        h("thead", null, h("tr", null, h("th", null, "Thread"), TOTALS.map((t) => h("th", null, t)))),
        h("tbody", null, threads.slice(0, ROWS_MAX).map(([id, five]) => h("tr", null, h("td", null, String(id)), five.map((n) => h("td", { class: "numeric" }, exact(n)))))),
      ),
    );
  }

  private drawHead(): void {
    const pick = (sort: { key: SortKey; descending: boolean }): void => {
      this.sort = sort;
      this.drawHead();
      this.fill();
    };
    replace(this.head, COLUMNS.map((c) => sortHead(c, this.sort, pick)));
  }

  private fill(): void {
    const query = this.search.input.value.trim().toLowerCase();
    const found = this.all.filter((r) => query === "" || r.text.includes(query));
    const shown = sorted(found, this.sort.key, this.sort.descending).slice(0, ROWS_MAX);
    const whole = Math.max(1, this.run.total[0]);
    replace(
      this.body,
      shown.map((r) =>
        h(
          "tr",
          null,
          h("td", { title: visible(r.file ? `${r.file}:${r.line}` : r.object, 500) }, code(visible(r.name, 120))),
          h("td", null, code(visible(basename(r.object), 40))),
          h("td", { class: "numeric" }, exact(r.own)),
          h("td", { class: "numeric" }, percent(r.own / whole)),
          h("td", { class: "numeric" }, exact(r.all)),
          h("td", { class: "numeric" }, percent(r.all / whole)),
          h("td", { class: "numeric" }, exact(r.calls)),
        ),
      ),
    );
    const left = this.run.functions_left_out;
    if (this.all.length === 0) replace(this.note, "Functions were not counted in this run: farsight count --functions does.");
    else if (shown.length < found.length) replace(this.note, `${exact(shown.length)} of ${plural(found.length, "function")}; search to see others`);
    else replace(this.note, plural(found.length, "function"), left > 0 ? `; ${exact(left)} more are in the profile` : null);
  }
}
