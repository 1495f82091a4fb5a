// What every mode shows of a run: which it is, how it ended, what it took and what is doubtful in it. Also the pieces
// that several modes' views are made of: a search box, and the head of a column that sorts.

import type { RunHead, Summary } from "./data.ts";
import { choice, code, h, type Child } from "./dom.ts";
import { basename, count as plural, duration, exitText, moment, shell, visible } from "./format.ts";
import type { Mode, View } from "./modes.ts";

/** A mode whose view needs nothing but its runs. */
export function modeOf<K extends keyof Summary["modes"]>(
  id: K,
  title: string,
  view: (runs: NonNullable<Summary["modes"][K]>["runs"]) => View,
): Mode {
  return {
    id,
    title,
    present: (summary) => (summary.modes[id]?.runs.length ?? 0) > 0,
    async mount(summary) {
      const shown = view(summary.modes[id]!.runs);
      document.documentElement.dataset["ready"] = "";
      return shown;
    },
  };
}

/** One fact; nothing where there is no value. */
export function fact(label: string, value: Child, title?: string): Child {
  return value ? h("div", { class: "fact", title }, h("dt", null, label), h("dd", null, value)) : null;
}

/** The facts of a run: the common ones followed by `more`, then `others` in a list of their own. */
export function facts(runs: readonly RunHead[], run: RunHead, show: (index: number) => void, more: Child, others: Child = null): Child {
  const options = runs.map((r, i) => ({ value: String(i), label: `${i + 1}. ${visible(basename(r.program), 40)}, ${duration(r.cpu_ns)} CPU, ${moment(r.started_unix_ms)}` }));
  return h(
    "div",
    { class: "facts" },
    runs.length > 1 ? choice("Run", options, String(runs.indexOf(run)), (v) => show(Number(v))) : null,
    h(
      "div",
      { class: "run" },
      h(
        "dl",
        null,
        h("div", { class: "fact" }, h("dt", { class: "unseen" }, "Command"), h("dd", null, code(visible(shell(run.command), 300), { class: "command" }))),
        fact("Ended", exitText(run.exit_code, run.exit_signal)),
        fact("Wall", duration(run.wall_ns)),
        more,
      ),
    ),
    others ? h("div", { class: "run" }, h("dl", null, others)) : null,
  );
}

/** What is missing from or doubtful in a run. */
export function problems(list: readonly string[]): Child {
  if (list.length === 0) return null;
  return h(
    "details",
    { class: "problems" },
    h("summary", { title: "What is missing from or doubtful in this data" }, `⚠ ${plural(list.length, "problem")}`),
    h("ul", null, list.map((p) => h("li", null, code(visible(p, 1000))))),
  );
}

/** A field to search in, and the box that shows its key. */
export function searchBox(placeholder: string, oninput: () => void): { input: HTMLInputElement; box: HTMLElement; key(event: KeyboardEvent): void } {
  const input = h("input", { type: "search", placeholder, "aria-label": "Search", "aria-keyshortcuts": "/", autocomplete: "off", spellcheck: "false", oninput });
  const key = (event: KeyboardEvent): void => {
    if (event.key !== "/") return;
    event.preventDefault();
    input.focus();
  };
  return { input, box: h("div", { class: "searchbox" }, input, h("kbd", { "aria-hidden": "true" }, "/")), key };
}

/** The head of a column: a click sorts by it, another one the other way round. */
export function sortHead<K>(column: { key: K; label: string; title: string; numeric: boolean }, sort: { key: K; descending: boolean }, pick: (sort: { key: K; descending: boolean }) => void): Child {
  const here = sort.key === column.key;
  const onclick = (): void => pick({ key: column.key, descending: here ? !sort.descending : column.numeric });
  return h(
    "th",
    { scope: "col", class: column.numeric ? "numeric" : null, "aria-sort": here ? (sort.descending ? "descending" : "ascending") : "none" },
    h("button", { type: "button", title: column.title, onclick }, column.label, h("span", { class: "arrow", "aria-hidden": "true" }, here ? (sort.descending ? " ↓" : " ↑") : "")),
  );
}
