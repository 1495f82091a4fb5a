// What the growth views share: the runs, the store, the rows, and what can be derived from them.

import type { Store } from "../state.ts";
import type { Routine, Run } from "./model.ts";
import { match, type Row } from "./rows.ts";

const KEY = "farsight-starred";

export class Session {
  private cached: { a: number; b: number; rows: Row[]; byId: Map<string, Row> } | null = null;
  readonly starred: Set<string>;

  constructor(
    readonly runs: readonly Run[],
    readonly store: Store,
  ) {
    this.starred = new Set(loadStarred());
  }

  /** The run that is shown. */
  get a(): Run {
    return this.runs[this.store.get().a] ?? this.runs[0]!;
  }

  /** The run that it is compared with, if any. */
  get b(): Run | null {
    const { b } = this.store.get();
    const run = this.runs[b];
    return run && run !== this.a ? run : null;
  }

  get rows(): readonly Row[] {
    return this.derived().rows;
  }

  row(id: string): Row | null {
    return this.derived().byId.get(id) ?? null;
  }

  private derived(): { rows: Row[]; byId: Map<string, Row> } {
    const a = this.a.index;
    const b = this.b?.index ?? -1;
    if (this.cached?.a !== a || this.cached.b !== b) {
      const rows = match(this.a, this.b);
      this.cached = { a, b, rows, byId: new Map(rows.map((r) => [r.id, r])) };
    }
    return this.cached;
  }

  /** The run that a row's main routine is of. */
  runOf(row: Row): Run {
    return row.a ? this.a : this.b!;
  }

  select(routine: Routine): void {
    this.store.set({ selected: routine.id, view: "routines" });
  }

  star(id: string): void {
    if (!this.starred.delete(id)) this.starred.add(id);
    try {
      localStorage.setItem(KEY, JSON.stringify([...this.starred]));
    } catch {
      // Storage can be forbidden for files: stars then last as long as the page.
    }
  }
}

function loadStarred(): string[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(value) ? value.filter((v): v is string => typeof v === "string") : [];
  } catch {
    return [];
  }
}
