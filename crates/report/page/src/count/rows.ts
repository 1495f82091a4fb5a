// The function table of the count mode: its columns, and rows in order.

import type { CountData } from "../data.ts";

export interface Row {
  readonly name: string;
  readonly object: string;
  readonly file: string;
  readonly line: number;
  readonly calls: number;
  readonly own: number;
  readonly all: number;
  /** What a search looks in. */
  readonly text: string;
}

export type SortKey = "name" | "object" | "own" | "ownShare" | "all" | "allShare" | "calls";

export const COLUMNS: readonly { key: SortKey; label: string; title: string; numeric: boolean }[] = [
  { key: "name", label: "Function", title: "The function", numeric: false },
  { key: "object", label: "Object", title: "The executable or library that holds it", numeric: false },
  { key: "own", label: "Self", title: "Instructions of its own", numeric: true },
  { key: "ownShare", label: "%", title: "Share of all instructions", numeric: true },
  { key: "all", label: "Total", title: "Instructions of its own and of what it called; a recursion counts once", numeric: true },
  { key: "allShare", label: "%", title: "Share of all instructions", numeric: true },
  { key: "calls", label: "Calls", title: "Times it was entered by a call", numeric: true },
];

export function rows(run: CountData): readonly Row[] {
  const f = run.functions;
  return f.name.map((name, i) => ({
    name,
    object: f.object[i]!,
    file: f.file[i]!,
    line: f.line[i]!,
    calls: f.calls[i]!,
    own: f.own[i]!,
    all: f.all[i]!,
    text: `${name}\n${f.object[i]!}`.toLowerCase(),
  }));
}

export function sorted(list: readonly Row[], key: SortKey, descending: boolean): Row[] {
  const sign = descending ? -1 : 1;
  const value = (r: Row): number | string => {
    switch (key) {
      case "name":
        return r.name;
      case "object":
        return r.object;
      case "own":
      case "ownShare":
        return r.own;
      case "all":
      case "allShare":
        return r.all;
      case "calls":
        return r.calls;
    }
  };
  return [...list].sort((x, y) => {
    const [a, b] = [value(x), value(y)];
    if (a !== b) return a < b ? -sign : sign;
    return x.name < y.name ? -1 : x.name > y.name ? 1 : 0;
  });
}
