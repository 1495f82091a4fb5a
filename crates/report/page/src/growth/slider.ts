// The forecast slider: how many times the input, who would dominate then, and who overtakes whom on the way.

import { code, h, replace, uid } from "../dom.ts";
import { percent, times, visible } from "../format.ts";
import { overtakes, place, read, shareAt } from "./forecast.ts";
import type { Routine } from "./model.ts";
import type { Session } from "./session.ts";

const STEPS = 300;
const PRESETS = [1, 10, 100, 1000];
/** Overtakes that are listed. */
const LISTED_MAX = 2;

/** The end of a long name tells more than its namespaces. */
function brief(name: string): string {
  const shown = visible(name, 200);
  return shown.length > 30 ? `…${shown.slice(-29)}` : shown;
}

function round(factor: number): number {
  return Number(factor.toPrecision(2));
}

export class Slider {
  readonly element: HTMLElement;
  private readonly input: HTMLInputElement;
  private readonly output = h("output", { class: "factor" });
  private readonly news = h("div", { class: "news", "aria-live": "polite" });

  constructor(private readonly session: Session) {
    const id = uid("factor");
    this.input = h("input", {
      type: "range",
      id,
      min: 0,
      max: STEPS,
      step: 1,
      oninput: () => this.pick(Math.pow(1000, Number(this.input.value) / STEPS)),
    });
    this.element = h(
      "section",
      { class: "forecast", "aria-label": "Forecast" },
      h(
        "div",
        { class: "dial" },
        h("label", { for: id }, "If the input were"),
        this.output,
        this.input,
        h(
          "div",
          { class: "presets", role: "group", "aria-label": "Input factor" },
          PRESETS.map((f) => h("button", { type: "button", onclick: () => this.pick(f) }, times(f))),
        ),
      ),
      this.news,
    );
    this.refresh();
  }

  /** The table follows: its order becomes that of the forecast. */
  private pick(factor: number): void {
    const rounded = factor >= 100 ? Math.round(factor) : factor >= 10 ? Math.round(factor * 10) / 10 : Math.round(factor * 100) / 100;
    this.session.store.set({ factor: rounded, sort: "then", descending: true });
  }

  refresh(): void {
    const { session } = this;
    const { factor } = session.store.get();
    this.output.textContent = times(factor);
    this.input.value = String(Math.round((Math.log(factor) / Math.log(1000)) * STEPS));
    this.input.setAttribute("aria-valuetext", `${times(factor)} the input`);
    for (const [i, b] of [...this.element.querySelectorAll(".presets button")].entries()) {
      b.setAttribute("aria-pressed", String(PRESETS[i] === factor));
    }
    const run = session.a;
    const known = run.routines.some((r) => r.forecast);
    this.element.hidden = run.routines.length === 0;
    this.input.disabled = !known;
    if (!known) {
      replace(this.news, h("p", null, "No forecast: no routine's growth is known."));
      return;
    }
    const at = place(run.data.factors, factor);
    const passed = factor > 1 ? overtakes(run, factor) : [];
    const link = (r: Routine): HTMLElement =>
      h("button", { type: "button", class: "link", onclick: () => session.select(r) }, code(brief(r.name)));
    const held = read(run.data.unextrapolated_share, at);
    replace(
      this.news,
      factor <= 1
        ? h("p", null, "This is the run as measured. Move the slider to see who will dominate on larger inputs.")
        : passed.length === 0
          ? h("p", null, `Nobody overtakes anybody up to ${times(factor)}.`)
          : h(
              "ul",
              null,
              passed.slice(0, LISTED_MAX).map((o) =>
                h(
                  "li",
                  { title: `Between ${times(round(o.earliest))} and ${o.latest === null ? "never" : times(round(o.latest))}, as far as the intervals tell` },
                  link(o.routine), " overtakes ", link(o.passes), ` at ${times(round(o.at))}, `,
                  h("strong", null, percent(shareAt(o.routine, at))), " then",
                ),
              ),
              passed.length > LISTED_MAX
                ? h("li", { class: "rest" }, h("button", { type: "button", class: "link", onclick: () => session.store.set({ view: "program" }) }, `and ${passed.length - LISTED_MAX} more`))
                : null,
            ),
      held > 0.005
        ? h("p", { class: "held", title: "Their growth is unknown, so that it is not extrapolated" }, `${percent(held)} of the cost is of unknown growth and held at its measured value.`)
        : null,
    );
  }
}
