// The causal mode: what making a line or function faster would gain, the most valuable first.

import type { CausalData, CausalResult } from "../data.ts";
import { choice, code, h, replace, segmented, type Child } from "../dom.ts";
import { basename, exact, percent, visible } from "../format.ts";
import type { Mode, View } from "../modes.ts";
import { fact, facts, modeOf, problems } from "../run.ts";
import { dots, draw, range } from "./curve.ts";

/** Small drawings that are shown. */
const SMALL_MAX = 60;

const VERDICTS: Record<CausalResult["verdict"], string> = {
  "worth it": "Making it faster makes the program faster.",
  "no effect": "Making it faster changes nothing: other code sets the pace.",
  contention: "Making it faster makes the program slower.",
  unknown: "The data do not say.",
};

export const causal: Mode = modeOf("causal", "What-if", (runs) => new CausalView(runs));

class CausalView implements View {
  readonly element = h("div", { class: "counts causal" });
  readonly tabs = h("nav", { class: "views", "aria-label": "Views" });
  private readonly answer = h("section", { class: "answer", "aria-label": "Summary" });
  private readonly finder = h("div", { class: "finder" });
  private readonly content = h("section", { class: "functions", "aria-label": "Targets" });
  private run: CausalData;
  private chosen = 0;
  /** A point's number, or -1: all points of the chosen target beside each other. */
  private point = 0;
  private raw = true;

  constructor(private readonly runs: readonly CausalData[]) {
    this.run = runs[0]!;
    this.element.append(this.answer, this.finder, this.content);
    this.show(0);
  }

  key(event: KeyboardEvent): void {
    const step = event.key === "j" || event.key === "ArrowDown" ? 1 : event.key === "k" || event.key === "ArrowUp" ? -1 : 0;
    if (step === 0) return;
    const next = this.chosen + step;
    if (next >= 0 && next < Math.min(this.results().length, SMALL_MAX)) {
      this.chosen = next;
      this.draw();
      event.preventDefault();
    }
  }

  private show(index: number): void {
    this.run = this.runs[index]!;
    this.chosen = 0;
    // The point of the most valuable result.
    this.point = this.run.results[0]?.point ?? 0;
    replace(this.answer, this.sentence(), this.facts(), problems([...this.run.diagnoses, ...this.run.problems]));
    this.controls();
    this.draw();
  }

  private results(): CausalResult[] {
    return this.run.results.filter((r) => r.point === this.point);
  }

  private name(r: CausalResult): string {
    return visible(basename(this.run.targets[r.target]!.name), 80);
  }

  private gain(r: CausalResult, speedup: number): [number, number] | null {
    const level = r.levels.find((l) => Math.abs(l[0] - speedup) < 1e-6);
    if (!level) return null;
    const half = level[2] === null || level[3] === null ? Infinity : (level[3] - level[2]) / 2;
    return [level[1], half];
  }

  private words(r: CausalResult, speedup: number): string {
    const found = this.gain(r, speedup);
    if (!found) return "";
    const sign = found[0] >= 0 ? "+" : "";
    return Number.isFinite(found[1]) ? `${sign}${percent(found[0])} ±${percent(found[1])}` : `${sign}${percent(found[0])}`;
  }

  private sentence(): Child {
    const worth = this.run.results.filter((r) => r.verdict === "worth it");
    const top = worth[0];
    if (!top) {
      const nothing = this.run.results.length === 0 ? "There is nothing to show" : "Nothing was found that is worth making faster";
      return h("h1", null, nothing, this.run.diagnoses.length > 0 ? `: ${visible(this.run.diagnoses[0]!, 300)}` : ".");
    }
    return h("h1", null, "Making ", code(this.name(top)), " twice as fast would make the program ", h("strong", null, this.words(top, 0.5) || "faster"), " faster.");
  }

  private facts(): Child {
    const d = this.run;
    const more = [
      fact("Experiments", exact(d.experiments.target.length)),
      fact("Samples", `${exact(d.in_scope)} in scope of ${exact(d.samples)} (${d.backend})`),
    ];
    return facts(this.runs, d, (i) => this.show(i), more);
  }

  private controls(): void {
    const points = this.run.points;
    const raw = segmented(
      "Experiments",
      [
        { value: "raw", label: "With experiments", title: "Each experiment as a dot, in the order of time" },
        { value: "curve", label: "Curve only", title: "The estimate and its interval" },
      ],
      this.raw ? "raw" : "curve",
      (v) => {
        this.raw = v === "raw";
        raw.set(v);
        this.draw();
      },
    );
    const pick = (v: string): void => {
      this.point = Number(v);
      this.chosen = 0;
      this.draw();
    };
    const options = points.map(([name, kind, visits], i) => ({ value: String(i), label: `${visible(name, 60)} (${kind}, ${exact(visits)} visits)` }));
    replace(this.finder, points.length > 1 ? h("label", null, "Progress at ", choice("Progress point", options, String(this.point), pick)) : null, raw);
  }

  private draw(): void {
    const results = this.results();
    const chosen = results[Math.min(this.chosen, results.length - 1)];
    if (!chosen) return replace(this.content, h("p", { class: "note" }, "No experiment has progress at this point."));
    replace(this.content, h("div", { class: "what-if" }, this.multiples(results), this.detail(chosen)));
  }

  /** Small drawings on one scale, the most valuable first. */
  private multiples(results: readonly CausalResult[]): Child {
    const [low, high] = range(results);
    const cards = results.slice(0, SMALL_MAX).map((r, i) =>
      h(
        "button",
        {
          type: "button",
          class: `card ${r.verdict.replace(" ", "-")}`,
          "aria-pressed": String(i === this.chosen),
          title: VERDICTS[r.verdict],
          onclick: () => {
            this.chosen = i;
            this.draw();
          },
        },
        h("span", { class: "title" }, code(this.name(r))),
        draw(r, { width: 180, height: 70, low, high, axes: false }, `Gain over speedup of ${this.name(r)}`),
        h("span", { class: "foot" }, h("b", null, r.verdict), ` ${this.words(r, 0.5)}`),
      ),
    );
    return h(
      "div",
      { class: "multiples", role: "group", "aria-label": "Targets, the most valuable first" },
      cards,
      results.length > SMALL_MAX ? h("p", { class: "note" }, `The first ${SMALL_MAX} of ${exact(results.length)} are shown.`) : null,
    );
  }

  private detail(r: CausalResult): Child {
    const target = this.run.targets[r.target]!;
    const experiments = dots(this.run, r);
    const [low, high] = range([r]);
    const frame = { width: 560, height: 320, low, high, axes: true };
    return h(
      "div",
      { class: "detail" },
      h("h2", null, code(visible(target.name, 200)), target.function ? [" in ", code(visible(target.function, 120))] : null),
      h("p", null, h("b", null, r.verdict), `: ${r.reason}. ${percent(r.share)} of the time in scope, ${exact(target.samples)} samples.`),
      r.phase_factor < 1 ? h("p", { class: "note" }, `Scaled by ${percent(r.phase_factor)}: it runs in a part of the run only.`) : null,
      draw(r, frame, `Gain of the program over speedup of ${this.name(r)}`, this.raw ? experiments.filter((d) => d.speedup > 0) : []),
      h(
        "table",
        { class: "facts-table" },
        h("thead", null, h("tr", null, ["Faster by", "Program gains", "95 % interval", "Experiments"].map((t) => h("th", { scope: "col" }, t)))),
        h(
          "tbody",
          null,
          r.levels.map(([speedup, gain, ciLow, ciHigh, n]) =>
            h("tr", null, h("td", { class: "numeric" }, percent(speedup)), h("td", { class: "numeric" }, percent(gain)), h("td", { class: "numeric" }, ciLow === null || ciHigh === null ? "too few" : `${percent(ciLow)} to ${percent(ciHigh)}`), h("td", { class: "numeric" }, exact(n))),
          ),
        ),
      ),
      this.others(r),
      this.source(r),
    );
  }

  /** The same target at the other points: what helps one may cost another. */
  private others(r: CausalResult): Child {
    const others = this.run.results.filter((o) => o.target === r.target && o.point !== r.point);
    if (others.length === 0) return null;
    const [low, high] = range([r, ...others]);
    return h(
      "div",
      { class: "points" },
      h("h3", null, "At every progress point"),
      [r, ...others].map((o) =>
        h(
          "figure",
          null,
          draw(o, { width: 180, height: 80, low, high, axes: false }, `Gain at ${this.run.points[o.point]![0]}`),
          h("figcaption", null, code(visible(this.run.points[o.point]![0], 60)), ` ${o.verdict} ${this.words(o, 0.5)}`),
        ),
      ),
    );
  }

  private source(r: CausalResult): Child {
    const target = this.run.targets[r.target]!;
    const [first, lines] = target.source;
    if (lines.length === 0) return null;
    return h(
      "div",
      { class: "excerpt" },
      h("h3", null, code(visible(`${target.file}:${target.line}`, 300))),
      h(
        "pre",
        null,
        lines.map((text, i) => h("span", { class: first + i === target.line ? "line here" : "line" }, `${String(first + i).padStart(5)}  ${text}\n`)),
      ),
    );
  }
}
