// The growth mode: answer, forecast slider, table with detail, and the whole-program charts.

import { CLASSES } from "../classes.ts";
import { section, type Summary } from "../data.ts";
import { choice, h, replace } from "../dom.ts";
import { count, exact, visible } from "../format.ts";
import { DEFAULTS, Store, type State } from "../state.ts";
import type { Mode, View } from "../modes.ts";
import { Answer } from "./answer.ts";
import { Detail } from "./detail.ts";
import { Run } from "./model.ts";
import { ProgramView } from "./program.ts";
import { Session } from "./session.ts";
import { Slider } from "./slider.ts";
import { Table } from "./table.ts";

export const growth: Mode = {
  id: "growth",
  title: "Growth",
  present: (summary: Summary) => (summary.modes.growth?.runs.length ?? 0) > 0,
  async mount(summary: Summary): Promise<View> {
    const runs = await Promise.all(
      summary.modes.growth!.runs.map(async (data, i) => {
        const bytes = await section(`forecast-${i}`);
        return new Run(data, new Float32Array(bytes.buffer), i);
      }),
    );
    const view = new GrowthView(runs);
    // The points come after the first paint: the table and the sentences do not need them.
    void view.loadPoints();
    return view;
  },
};

/** Changes that the rows or their order depend on. */
const ROW_KEYS: readonly (keyof State)[] = [
  "query", "class", "verdict", "library", "changedOnly", "starredOnly", "sort", "descending", "factor", "a", "b",
];
const DETAIL_KEYS: readonly (keyof State)[] = ["selected", "logX", "logY", "cost", "guess", "guessPower", "a", "b"];

class GrowthView implements View {
  readonly element: HTMLElement;
  readonly tabs = h("nav", { class: "views", "aria-label": "Views" });
  private readonly session: Session;
  private readonly answer: Answer;
  private readonly slider: Slider;
  private readonly table: Table;
  private readonly detail: Detail;
  private readonly program: ProgramView;
  private readonly search: HTMLInputElement;
  private readonly filters = h("div", { class: "filters" });
  private readonly counter = h("span", { class: "counter", role: "status" });
  private readonly split: HTMLElement;
  private pending = 0;

  constructor(private readonly runs: readonly Run[]) {
    const first = runs[0]!.routines[0]?.id ?? "";
    const store = new Store({ ...DEFAULTS, selected: first, b: runs.length === 2 ? 1 : -1 });
    this.session = new Session(runs, store);
    this.answer = new Answer(this.session);
    this.slider = new Slider(this.session);
    this.program = new ProgramView(this.session);
    this.detail = new Detail(this.session, () => this.table.element.scrollIntoView());
    this.table = new Table(
      this.session,
      (shown, all) => {
        this.counter.textContent = shown === all ? count(all, "routine") : `${exact(shown)} of ${count(all, "routine")}`;
      },
      (byKey) => this.open(byKey),
    );
    this.search = h("input", {
      type: "search",
      placeholder: "Search routines, libraries, files…",
      "aria-label": "Search",
      "aria-keyshortcuts": "/",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => store.set({ query: this.search.value }),
      onkeydown: (e: KeyboardEvent) => this.searchKey(e),
    });
    this.split = h(
      "div",
      { class: this.session.b ? "split compare" : "split" },
      h(
        "section",
        { class: "master", "aria-label": "Routine table" },
        h("div", { class: "finder" }, h("div", { class: "searchbox" }, this.search, h("kbd", { "aria-hidden": "true" }, "/")), this.counter, this.filters),
        this.table.element,
      ),
      h("div", { class: "divider", role: "separator", "aria-orientation": "vertical", "aria-label": "Width of the table", tabindex: 0, onpointerdown: (e: PointerEvent) => this.drag(e), onkeydown: (e: KeyboardEvent) => this.nudge(e) }),
      this.detail.element,
    );
    this.element = h("div", { class: "growth" }, this.answer.element, this.slider.element, this.split, this.program.element);
    this.detail.element.addEventListener("starred", () => this.table.refresh());
    store.on((changed) => this.changed(changed));
    this.drawTabs();
    this.drawFilters();
    this.showView();
    this.search.value = store.get().query;
    this.table.refresh();
    requestAnimationFrame(() => this.table.reveal());
  }

  async loadPoints(): Promise<void> {
    for (const run of this.runs) {
      // The page as it stands is painted first.
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      run.setPoints(await section(`points-${run.index}`, true));
    }
    this.table.refresh();
    this.detail.refresh();
    document.documentElement.dataset["ready"] = "";
  }

  key(event: KeyboardEvent): void {
    const { store } = this.session;
    const state = store.get();
    switch (event.key) {
      case "/":
        store.set({ view: "routines" });
        this.search.focus();
        this.search.select();
        break;
      case "x":
        store.set({ logX: !state.logX });
        break;
      case "y":
        store.set({ logY: !state.logY });
        break;
      case "s":
        this.detail.star();
        break;
      case "1":
        store.set({ view: "routines" });
        break;
      case "2":
        store.set({ view: "program" });
        break;
      case "Escape":
        this.table.focus();
        break;
      case "ArrowDown":
      case "ArrowUp":
        if (document.activeElement !== document.body || state.view !== "routines") return;
        this.table.focus();
        break;
      default:
        return;
    }
    event.preventDefault();
  }

  private searchKey(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      if (this.search.value) this.session.store.set({ query: "" });
      else this.table.focus();
      event.preventDefault();
    } else if (event.key === "Enter" || event.key === "ArrowDown") {
      const { selected } = this.session.store.get();
      const first = this.table.firstId();
      if (first && selected !== first) this.session.store.set({ selected: first });
      this.table.focus();
      event.preventDefault();
    }
  }

  private changed(changed: ReadonlySet<keyof State>): void {
    const state = this.session.store.get();
    const any = (keys: readonly (keyof State)[]): boolean => keys.some((k) => changed.has(k));
    if (changed.has("query") && this.search.value !== state.query) this.search.value = state.query;
    if (any(["class", "verdict", "library", "changedOnly", "starredOnly", "a", "b"])) this.drawFilters();
    if (any(["a", "b"])) {
      this.split.classList.toggle("compare", this.session.b !== null);
      this.answer.refresh();
      this.answer.refreshFacts();
      this.slider.refresh();
    }
    if (changed.has("factor")) {
      this.answer.refresh();
      this.slider.refresh();
    }
    if (any(ROW_KEYS)) this.table.refresh();
    else if (changed.has("selected")) this.table.mark();
    if (changed.has("selected")) this.table.reveal();
    if (changed.has("view")) this.showView();
    else if (state.view === "program" && any(["factor", "a", "b"])) this.later(() => this.program.refresh());
    if (any(DETAIL_KEYS)) this.detail.refresh();
    else if (changed.has("factor") && state.view === "routines") this.later(() => this.detail.refreshForecast());
  }

  /** Once per frame, however many changes. */
  private later(work: () => void): void {
    cancelAnimationFrame(this.pending);
    this.pending = requestAnimationFrame(work);
  }

  private showView(): void {
    const { view } = this.session.store.get();
    this.split.hidden = view !== "routines";
    this.program.element.hidden = view !== "program";
    if (view === "program") this.program.refresh();
    this.drawTabs();
  }

  private drawTabs(): void {
    const { store } = this.session;
    const { view } = store.get();
    const tab = (id: State["view"], label: string) =>
      h("button", { type: "button", "aria-current": view === id ? "page" : null, onclick: () => store.set({ view: id }) }, label);
    replace(this.tabs, tab("routines", "Routines"), tab("program", "Whole program"));
  }

  private drawFilters(): void {
    const { session } = this;
    const { store, rows } = session;
    const state = store.get();
    const tally = (of: (r: (typeof rows)[number]) => string): Map<string, number> => {
      const out = new Map<string, number>();
      for (const r of rows) out.set(of(r), (out.get(of(r)) ?? 0) + 1);
      return out;
    };
    const classes = tally((r) => r.main.fit.growth?.class.key ?? "unknown");
    const verdicts = tally((r) => r.main.fit.verdict);
    const libraries = [...tally((r) => r.main.library)].sort((x, y) => y[1] - x[1]);
    const all = (label: string) => ({ value: "", label });
    const check = (label: string, value: boolean, set: (v: boolean) => void): HTMLElement => {
      const box = h("input", { type: "checkbox", onchange: () => set(box.checked) });
      box.checked = value;
      return h("label", { class: "check" }, box, label);
    };
    replace(
      this.filters,
      choice(
        "Growth class",
        [all("All classes"), ...[...CLASSES.map((c) => ({ value: c.key, label: c.label })), { value: "unknown", label: "unknown" }]
          .filter((c) => classes.has(c.value))
          .map((c) => ({ value: c.value, label: `${c.label} (${classes.get(c.value)})` }))],
        state.class,
        (v) => store.set({ class: v }),
        state.class ? { class: "active" } : {},
      ),
      choice(
        "Verdict",
        [all("All verdicts"), ...["confident", "tentative", "unknown"].filter((v) => verdicts.has(v)).map((v) => ({ value: v, label: `${v} (${verdicts.get(v)})` }))],
        state.verdict,
        (v) => store.set({ verdict: v }),
        state.verdict ? { class: "active" } : {},
      ),
      choice(
        "Library",
        [all("All libraries"), ...libraries.map(([name, n]) => ({ value: name, label: `${visible(name, 40)} (${n})` }))],
        state.library,
        (v) => store.set({ library: v }),
        state.library ? { class: "active" } : {},
      ),
      session.b ? check("class changed", state.changedOnly, (v) => store.set({ changedOnly: v })) : null,
      session.starred.size > 0 || state.starredOnly ? check("starred", state.starredOnly, (v) => store.set({ starredOnly: v })) : null,
      state.class || state.verdict || state.library || state.changedOnly || state.starredOnly
        ? h("button", { type: "button", class: "link", onclick: () => store.set({ class: "", verdict: "", library: "", changedOnly: false, starredOnly: false }) }, "Clear")
        : null,
    );
  }

  /** Enter, or a click on a row. Enter goes to the routine; where only one pane fits, so does a click. */
  private open(byKey: boolean): void {
    const stacked = getComputedStyle(this.split).display !== "grid";
    if (byKey) this.detail.element.focus({ preventScroll: true });
    if (stacked) this.detail.element.scrollIntoView({ block: "start" });
  }

  private setWidth(px: number): void {
    const whole = this.split.clientWidth;
    const share = Math.min(75, Math.max(25, (100 * px) / whole));
    this.split.style.setProperty("--master", `${share}%`);
    this.split.querySelector(".divider")!.setAttribute("aria-valuenow", String(Math.round(share)));
  }

  private drag(event: PointerEvent): void {
    const divider = event.currentTarget as HTMLElement;
    divider.setPointerCapture(event.pointerId);
    const left = this.split.getBoundingClientRect().left;
    const moved = (e: PointerEvent): void => this.setWidth(e.clientX - left);
    divider.addEventListener("pointermove", moved);
    divider.addEventListener("pointerup", () => divider.removeEventListener("pointermove", moved), { once: true });
  }

  private nudge(event: KeyboardEvent): void {
    const step = event.key === "ArrowLeft" ? -40 : event.key === "ArrowRight" ? 40 : 0;
    if (step === 0) return;
    event.preventDefault();
    this.setWidth(this.split.querySelector(".master")!.clientWidth + step);
  }
}
