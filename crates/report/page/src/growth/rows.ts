// The rows of the routine table: one routine, or the same routine of two runs; columns, search, filters, order.

import { growthLabel, growthOrder } from "../classes.ts";
import type { State } from "../state.ts";
import { place, shareAt, type Place } from "./forecast.ts";
import type { Routine, Run } from "./model.ts";

export interface Row {
  readonly id: string;
  /** The routine in the first run, and in the second one when two are shown. */
  readonly a: Routine | null;
  readonly b: Routine | null;
  /** The one that names the row: of the first run when it is there. */
  readonly main: Routine;
}

/** Routines of two runs are the same when their ids are: linker name, and file name of the object. */
export function match(a: Run, b: Run | null): Row[] {
  const rows: Row[] = a.routines.map((r) => ({ id: r.id, a: r, b: b?.byId.get(r.id) ?? null, main: r }));
  for (const r of b?.routines ?? []) {
    if (!a.byId.has(r.id)) rows.push({ id: r.id, a: null, b: r, main: r });
  }
  return rows;
}

/** Whether both runs name a class for it, and not the same one. */
export function classChanged(row: Row): boolean {
  const before = row.a?.fit.growth;
  const after = row.b?.fit.growth;
  return !!before && !!after && growthLabel(before) !== growthLabel(after);
}

/** The change of cumulative cost, as a ratio; `NaN` when one side is missing. */
export function costRatio(row: Row): number {
  return row.a && row.b && row.a.cost > 0 ? row.b.cost / row.a.cost : NaN;
}

export function shareDelta(row: Row): number {
  return row.a && row.b ? row.b.share - row.a.share : NaN;
}

export interface Context {
  /** Where the forecast is read. */
  readonly at: Place;
  readonly starred: ReadonlySet<string>;
}

export interface Column {
  readonly key: string;
  readonly label: string;
  readonly title: string;
  /** Pixels; 0 takes what is left. */
  readonly width: number;
  readonly numeric: boolean;
  /** What the column is ordered by; `NaN` comes last either way. */
  readonly value: ((row: Row, context: Context) => number | string) | null;
  /** The order that a first click gives. */
  readonly descending: boolean;
  /** Only when two runs are shown. */
  readonly compare?: boolean;
}

const text = (key: string, label: string, title: string, width: number, value: (row: Row) => string): Column => ({
  key, label, title, width, numeric: false, value, descending: false,
});
const number = (
  key: string, label: string, title: string, width: number, value: (row: Row, context: Context) => number,
): Column => ({ key, label, title, width, numeric: true, value, descending: true });

export const COLUMNS: readonly Column[] = [
  { ...number("rank", "#", "What to look at first: growth, weighted by share and forecast", 52, (r) => r.main.rank), descending: false },
  text("name", "Routine", "Name, library and source line", 0, (r) => r.main.name.toLowerCase()),
  { key: "plot", label: "Cost plot", title: "Mean cost against input size, with the fitted curve", width: 100, numeric: false, value: null, descending: false },
  number("class", "Growth", "Class of the fitted cost function", 106, (r) => growthOrder(r.main.fit.growth)),
  { ...number("classB", "Growth B", "Class of the fitted cost function in run B", 106, (r) => (r.b ? growthOrder(r.b.fit.growth) : NaN)), compare: true },
  { ...number("costRatio", "Cost B/A", "Cumulative cost in run B over that in run A", 88, costRatio), compare: true },
  { ...number("shareDelta", "Δ share", "Share in run B minus share in run A, in percentage points", 84, shareDelta), compare: true },
  number("share", "Share now", "Cumulative cost as a share of the run, recursion counted once", 90, (r) => r.main.share),
  number("then", "At", "Forecast share of the run at the chosen input", 94, (r, c) => shareAt(r.main, c.at)),
  number("self", "Self cost", "Cost without callees", 92, (r) => r.main.costSelf),
  number("cost", "Total cost", "Cumulative cost, recursion counted once", 96, (r) => r.main.cost),
  number("calls", "Calls", "Activations", 84, (r) => r.main.calls),
  number("points", "Sizes", "Distinct input sizes: the number of points of the plot", 72, (r) => r.main.pointCount),
  number("largest", "Largest n", "Largest input size, in cells", 88, (r) => r.main.nMax),
  number("exponent", "Exponent", "Exponent of the best power law, with its 95 % confidence interval", 124, (r) => r.main.fit.exponent),
  text("verdict", "Verdict", "How far the fit can be trusted", 92, (r) => r.main.fit.verdict),
  text("library", "Library", "Executable or library that holds the routine", 150, (r) => r.main.library.toLowerCase()),
];

/** Whether a row passes the search and the filters. Search words must all occur, in any order. */
export function filter(rows: readonly Row[], state: Readonly<State>, starred: ReadonlySet<string>): Row[] {
  const words = state.query.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const { main } = row;
    if (state.verdict && main.fit.verdict !== state.verdict) return false;
    if (state.library && main.library !== state.library) return false;
    if (state.class && (main.fit.growth?.class.key ?? "unknown") !== state.class) return false;
    if (state.changedOnly && !classChanged(row)) return false;
    if (state.starredOnly && !starred.has(row.id)) return false;
    return words.every((w) => main.haystack.includes(w));
  });
}

export function sort(rows: Row[], state: Readonly<State>, context: Context): Row[] {
  const column = COLUMNS.find((c) => c.key === state.sort && c.value) ?? COLUMNS[0]!;
  const sign = state.descending ? -1 : 1;
  const keyed = rows.map((row) => ({ row, key: column.value!(row, context) }));
  keyed.sort((x, y) => {
    if (typeof x.key === "string" || typeof y.key === "string") {
      const [s, t] = [String(x.key), String(y.key)];
      return (s < t ? -sign : s > t ? sign : 0) || x.row.main.rank - y.row.main.rank;
    }
    if (Number.isNaN(x.key) || Number.isNaN(y.key)) {
      return Number(Number.isNaN(x.key)) - Number(Number.isNaN(y.key)) || x.row.main.rank - y.row.main.rank;
    }
    return sign * (x.key - y.key) || x.row.main.rank - y.row.main.rank;
  });
  return keyed.map((k) => k.row);
}

export function context(run: Run, state: Readonly<State>, starred: ReadonlySet<string>): Context {
  return { at: place(run.data.factors, state.factor), starred };
}
