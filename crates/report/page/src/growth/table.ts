// The routine table: thousands of rows, of which only those in view exist. Rows are keyed by routine and placed by
// transform, so that a new order glides instead of jumping.

import { h, replace } from "../dom.ts";
import { exact, times } from "../format.ts";
import { onChange } from "../theme.ts";
import { cell, move } from "./cells.ts";
import { place, positions } from "./forecast.ts";
import type { Run } from "./model.ts";
import { COLUMNS, context, filter, sort, type Column, type Context, type Row } from "./rows.ts";
import type { Session } from "./session.ts";
import { draw, HEIGHT, WIDTH } from "./spark.ts";

const ROW_PX = 46;
const NAME_PX = 200;
const NAME_NARROW_PX = 146;
/** Rows kept above and below the view, so that a scrolled frame is never empty. */
const OVERSCAN = 4;
/** Narrower tables have no thumbnails. */
const PLOT_FROM_PX = 560;
const PLOT_FROM_COMPARE_PX = 840;

export class Table {
  readonly element: HTMLElement;
  private readonly scroller: HTMLElement;
  private readonly head = h("div", { class: "row head", role: "row" });
  private readonly body = h("div", { class: "body", role: "rowgroup" });
  private readonly empty = h("p", { class: "empty", role: "status", hidden: true });
  private readonly drawn = new Map<string, HTMLElement>();
  private sparks = new WeakMap<Row, HTMLCanvasElement>();
  private rows: Row[] = [];
  private columns: readonly Column[] = [];
  private context!: Context;
  /** Positions by share as measured, and at the chosen factor. */
  private before: { run: Run; at: Uint32Array } | null = null;
  private after: Uint32Array = new Uint32Array();

  constructor(
    private readonly session: Session,
    private readonly counted: (shown: number, all: number) => void,
    private readonly open: (byKey: boolean) => void,
  ) {
    this.scroller = h(
      "div",
      {
        class: "scroller",
        role: "grid",
        tabindex: 0,
        "aria-label": "Routines",
        onkeydown: (e: KeyboardEvent) => this.key(e),
        onscroll: () => this.paint(),
      },
      h("div", { role: "rowgroup", class: "headgroup" }, this.head),
      this.body,
    );
    this.element = h("div", { class: "table" }, this.scroller, this.empty);
    new ResizeObserver(() => this.layout()).observe(this.scroller);
    onChange(() => {
      this.sparks = new WeakMap();
      this.redraw();
    });
  }

  /** Everything anew: rows, order, columns. */
  refresh(): void {
    const { session } = this;
    const state = session.store.get();
    this.context = context(session.a, state, session.starred);
    this.rows = sort(filter(session.rows, state, session.starred), state, this.context);
    if (this.before?.run !== session.a) {
      this.before = { run: session.a, at: positions(session.a, place(session.a.data.factors, 1)) };
    }
    this.after = positions(session.a, this.context.at);
    this.counted(this.rows.length, session.rows.length);
    this.empty.hidden = this.rows.length > 0;
    if (this.rows.length === 0) {
      replace(
        this.empty,
        session.rows.length === 0 ? "This run has no routines." : "No routine passes the search and the filters.",
      );
    }
    this.scroller.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.layout();
  }

  /** Puts the selected row where it can be seen. */
  reveal(): void {
    const index = this.rows.findIndex((r) => r.id === this.session.store.get().selected);
    if (index < 0) return;
    const top = index * ROW_PX;
    const view = this.scroller.clientHeight - this.head.offsetHeight;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + ROW_PX > this.scroller.scrollTop + view) this.scroller.scrollTop = top + ROW_PX - view;
  }

  focus(): void {
    this.scroller.focus();
  }

  firstId(): string | null {
    return this.rows[0]?.id ?? null;
  }

  private layout(): void {
    if (!this.context) return;
    const compare = this.session.b !== null;
    const width = this.scroller.clientWidth;
    const columns = COLUMNS.filter((c) => (compare || !c.compare) && (c.key !== "plot" || width >= (compare ? PLOT_FROM_COMPARE_PX : PLOT_FROM_PX)));
    this.columns = columns;
    const fixed = columns.reduce((sum, c) => sum + c.width, 0);
    const name = width < 520 ? NAME_NARROW_PX : NAME_PX;
    this.scroller.style.setProperty("--columns", columns.map((c) => (c.width ? `${c.width}px` : `minmax(${name}px, 1fr)`)).join(" "));
    this.scroller.style.setProperty("--width", `${Math.max(fixed + name, width)}px`);
    this.drawHead();
    this.body.style.height = `${this.rows.length * ROW_PX}px`;
    this.redraw();
  }

  private drawHead(): void {
    const state = this.session.store.get();
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset["sort"] : undefined;
    replace(
      this.head,
      this.columns.map((c) => {
        const sorted = state.sort === c.key;
        const label = c.key === "then" ? `${c.label} ${times(state.factor)}` : c.label;
        return h(
          "div",
          {
            class: `cell ${c.key}${c.numeric ? " numeric" : ""}`,
            role: "columnheader",
            "aria-sort": sorted ? (state.descending ? "descending" : "ascending") : c.value ? "none" : null,
          },
          c.value
            ? h(
                "button",
                { type: "button", "data-sort": c.key, title: c.title, onclick: () => this.sortBy(c) },
                h("span", null, label),
                h("span", { class: "arrow", "aria-hidden": "true" }, sorted ? (state.descending ? "↓" : "↑") : ""),
              )
            : h("span", { title: c.title }, label),
        );
      }),
    );
    if (focused) this.head.querySelector<HTMLElement>(`[data-sort="${focused}"]`)?.focus();
  }

  private sortBy(column: Column): void {
    const state = this.session.store.get();
    const descending = state.sort === column.key ? !state.descending : column.descending;
    this.session.store.set({ sort: column.key, descending });
  }

  /** Drops what the drawn rows say; the elements stay, for their places to change smoothly. */
  private redraw(): void {
    for (const element of this.drawn.values()) delete element.dataset["fresh"];
    this.paint();
  }

  private paint(): void {
    if (!this.context) return;
    const top = this.scroller.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW_PX) - OVERSCAN);
    const last = Math.min(this.rows.length, Math.ceil((top + this.scroller.clientHeight) / ROW_PX) + OVERSCAN);
    const wanted = new Set<string>();
    for (let i = first; i < last; i++) wanted.add(this.rows[i]!.id);
    for (const [id, element] of this.drawn) {
      if (!wanted.has(id)) {
        element.remove();
        this.drawn.delete(id);
      }
    }
    const selected = this.session.store.get().selected;
    for (let i = first; i < last; i++) {
      const row = this.rows[i]!;
      let element = this.drawn.get(row.id);
      if (!element) {
        element = this.newRow(row);
        this.drawn.set(row.id, element);
        this.body.appendChild(element);
      }
      element.style.transform = `translateY(${i * ROW_PX}px)`;
      element.setAttribute("aria-rowindex", String(i + 2));
      element.setAttribute("aria-selected", String(row.id === selected));
      if (element.dataset["fresh"] === undefined) this.fill(element, row);
    }
    if (this.drawn.has(selected)) this.scroller.setAttribute("aria-activedescendant", `row-${selected}`);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  private newRow(row: Row): HTMLElement {
    return h("div", {
      class: "row",
      role: "row",
      id: `row-${row.id}`,
      onclick: () => {
        this.session.store.set({ selected: row.id });
        this.open(false);
      },
    });
  }

  private fill(element: HTMLElement, row: Row): void {
    element.dataset["fresh"] = "";
    replace(
      element,
      this.columns.map((c) => {
        const box = h("div", { class: `cell ${c.key}${c.numeric ? " numeric" : ""}`, role: "gridcell" });
        if (c.key === "plot") {
          box.appendChild(this.spark(row));
        } else if (c.key === "rank") {
          replace(box, h("span", { class: "num" }, row.a ? exact(row.main.rank + 1) : "–"), row.a && move(this.before!.at[row.a.rank]!, this.after[row.a.rank]!));
        } else {
          replace(box, cell(c.key, row, this.context));
        }
        return box;
      }),
    );
  }

  /** The thumbnail of a row, drawn once: a new order or search does not change it. */
  private spark(row: Row): HTMLCanvasElement {
    const run = this.session.runOf(row);
    let canvas = this.sparks.get(row);
    if (!canvas) {
      canvas = h("canvas", { class: "spark", width: WIDTH, height: HEIGHT, "aria-hidden": "true" });
      draw(canvas, run, row.main);
      if (run.hasPoints) this.sparks.set(row, canvas);
    }
    return canvas;
  }

  private key(event: KeyboardEvent): void {
    if (event.target !== this.scroller || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW_PX) - 2);
    const steps: Record<string, number> = {
      ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity,
    };
    if (event.key === "Enter") {
      event.preventDefault();
      this.open(true);
      return;
    }
    const step = steps[event.key];
    if (step === undefined || this.rows.length === 0) return;
    event.preventDefault();
    const index = this.rows.findIndex((r) => r.id === this.session.store.get().selected);
    const next = index < 0 ? 0 : Math.max(0, Math.min(this.rows.length - 1, index + step));
    this.session.store.set({ selected: this.rows[next]!.id });
    this.reveal();
    this.paint();
  }

  /** The selection changed. */
  mark(): void {
    this.paint();
  }
}
