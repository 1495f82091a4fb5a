// The top of the page: the answer in a sentence, and what is known of the run.

import { choice, code, h, replace, type Child } from "../dom.ts";
import { basename, duration, exact, exitText, moment, percent, shell, si, visible } from "../format.ts";
import { fact, problems } from "../run.ts";
import { comparison, headline, type Part } from "./headline.ts";
import type { Run } from "./model.ts";
import type { Session } from "./session.ts";

export class Answer {
  readonly element = h("section", { class: "answer", "aria-label": "Summary" });
  private readonly lead = h("h1");
  private readonly more = h("p", { class: "more" });
  private readonly facts = h("div", { class: "facts" });

  constructor(private readonly session: Session) {
    this.element.append(this.lead, this.more, this.facts);
    this.refresh();
    this.refreshFacts();
  }

  /** The sentence alone; it depends on the slider. */
  refresh(): void {
    const { session } = this;
    const said = session.b
      ? comparison(session.rows, session.a, session.b)
      : headline(session.a, session.store.get().factor);
    replace(this.lead, said.lead.map((p) => this.part(p)));
    replace(this.more, said.more.map((p) => this.part(p)), session.runs.length > 1 ? this.pickers() : null);
    this.more.hidden = said.more.length === 0 && session.runs.length < 2;
  }

  refreshFacts(): void {
    const { session } = this;
    const runs = session.b ? [session.a, session.b] : [session.a];
    replace(
      this.facts,
      runs.map((run, i) => this.factsOf(run, session.b ? (i === 0 ? "A" : "B") : null)),
    );
  }

  private part(part: Part): Child {
    if (typeof part === "string") return part;
    if ("strong" in part) return h("strong", null, part.strong);
    const { routine } = part;
    return h(
      "a",
      {
        href: `#r=${encodeURIComponent(routine.id)}`,
        onclick: (e: Event) => {
          e.preventDefault();
          this.session.select(routine);
        },
      },
      code(visible(routine.name, 60)),
    );
  }

  private factsOf(run: Run, tag: string | null): HTMLElement {
    const d = run.data;
    const failed = d.exit_signal !== null || (d.exit_code !== null && d.exit_code !== 0);
    return h(
      "div",
      { class: "run" },
      tag && h("span", { class: `tag ${tag.toLowerCase()}`, title: `Run ${tag}` }, tag),
      h(
        "dl",
        null,
        h("div", { class: "fact" }, h("dt", { class: "unseen" }, "Command"), h("dd", { title: visible(shell(d.command), 2000) }, code(visible(shell(d.command), 300), { class: "command" }))),
        fact("Ended", h("span", { class: failed ? "failed" : "" }, (failed ? "✕ " : "") + exitText(d.exit_code, d.exit_signal))),
        fact("Wall", duration(d.wall_ns)),
        fact("CPU", duration(d.cpu_ns)),
        fact("Started", moment(d.started_unix_ms)),
        fact("Cost", `${si(d.cost_total)} ${run.unit}`, exact(d.cost_total)),
        fact("Calls", si(d.activations), exact(d.activations)),
        fact(
          "Input size",
          `${d.metric}, ${d.cell_bytes}-byte cells`,
          d.metric === "trms"
            ? "Threaded read memory size: distinct cells first read, and cells that other threads or the kernel wrote since"
            : "Read memory size: distinct cells that are first accessed with a read",
        ),
        d.size_error > 0 ? fact("Size error", `≤ ${percent(d.size_error)}`, "Neighbouring sizes were merged") : null,
      ),
      problems(d.problems),
    );
  }

  private pickers(): HTMLElement {
    const { store, runs, a, b } = this.session;
    const options = runs.map((r, i) => ({
      value: String(i),
      label: `${i + 1}. ${visible(basename(r.data.program), 40)}, ${r.data.metric} ${moment(r.data.started_unix_ms)}`.trim(),
    }));
    return h(
      "span",
      { class: "pickers" },
      h("label", null, h("span", { class: "tag a" }, "A"), choice("Run A", options, String(a.index), (v) => store.set({ a: Number(v) }))),
      h(
        "label",
        null,
        h("span", { class: "tag b" }, "B"),
        choice("Run B", [{ value: "-1", label: "nothing" }, ...options], String(b?.index ?? -1), (v) => store.set({ b: Number(v) })),
      ),
    );
  }
}
