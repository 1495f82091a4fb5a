// The table of call sites: its columns with the definitions of the Cilkprof paper, and rows in order.

import type { SpanData } from "../data.ts";

/** Count, work, span of a set of invocations. */
export type Sums = readonly [number, number, number];

export interface Site {
  readonly index: number;
  readonly file: string;
  readonly line: number;
  readonly function: string;
  readonly callee: string;
  readonly kind: string;
  readonly share: number;
  /** Top call site, top caller, local; over all invocations, and over those on the critical path. */
  readonly onWork: readonly [Sums, Sums, Sums];
  readonly onSpan: readonly [Sums, Sums, Sums];
  /** Parallelism of the program if the site were 2, 10, infinitely many times faster. */
  readonly whatIf: Sums;
  readonly advice: string;
  readonly text: string;
}

export type Format = "cost" | "count" | "ratio" | "share";

export interface Column {
  readonly key: string;
  readonly label: string;
  readonly title: string;
  readonly format: Format;
  /** Shown at first; the others on request. */
  readonly main: boolean;
  readonly value: (s: Site) => number;
}

const over = (m: Sums): number => (m[2] === 0 ? 1 : m[1] / m[2]);

const WHERE = ["on work", "on span"] as const;
const ABOUT = ["all invocations", "the invocations on the program's critical path"] as const;
const NESTED = [
  ["", "that are not nested in another invocation of the same call site (top call site)"],
  ["top ", "whose caller is not nested in another instance of the same function (top caller): these add up over a function"],
  ["local ", "each without what it called or spawned (local)"],
] as const;

function groups(): Column[] {
  return WHERE.flatMap((where, w) =>
    NESTED.flatMap(([prefix, which], n): Column[] => {
      const of = (s: Site): Sums => (w === 0 ? s.onWork : s.onSpan)[n]!;
      const about = `of ${ABOUT[w]!}, ${which}`;
      const key = `${w}${n}`;
      return [
        { key: `${key}w`, label: `${prefix}work ${where}`, title: `Work ${about}`, format: "cost", main: w === 0 && n === 0, value: (s) => of(s)[1] },
        { key: `${key}s`, label: `${prefix}span ${where}`, title: `Spans, added up, ${about}`, format: "cost", main: w === 0 && n === 0, value: (s) => of(s)[2] },
        { key: `${key}p`, label: `${prefix}parallelism ${where}`, title: `Work over span ${about}`, format: "ratio", main: w === 0 && n === 0, value: (s) => over(of(s)) },
        { key: `${key}c`, label: `${prefix}count ${where}`, title: `Number ${about}`, format: "count", main: false, value: (s) => of(s)[0] },
      ];
    }),
  );
}

export const COLUMNS: readonly Column[] = [
  { key: "share", label: "of span", title: "Share of the program's span that is the site's own code", format: "share", main: true, value: (s) => s.share },
  { key: "ownSpan", label: "own span", title: "The site's own code on the critical path: local span on span", format: "cost", main: true, value: (s) => s.onSpan[2][2] },
  { key: "ownWork", label: "own work", title: "The site's own code in all: local work on work", format: "cost", main: true, value: (s) => s.onWork[2][1] },
  { key: "calls", label: "calls", title: "Invocations: local count on work", format: "count", main: true, value: (s) => s.onWork[2][0] },
  { key: "if2", label: "if 2×", title: "The program's parallelism if the site's own code were twice as fast", format: "ratio", main: true, value: (s) => s.whatIf[0] },
  { key: "if10", label: "if 10×", title: "The program's parallelism if the site's own code were ten times as fast", format: "ratio", main: false, value: (s) => s.whatIf[1] },
  { key: "ifAll", label: "if ∞", title: "The program's parallelism if the site's own code took no time", format: "ratio", main: true, value: (s) => s.whatIf[2] },
  ...groups(),
];

export function sites(run: SpanData): readonly Site[] {
  const s = run.sites;
  const sums = (nine: readonly number[]): readonly [Sums, Sums, Sums] => {
    const three = (at: number): Sums => [nine[at]!, nine[at + 1]!, nine[at + 2]!];
    return [three(0), three(3), three(6)];
  };
  return s.line.map((line, i) => ({
    index: i,
    file: s.file[i]!,
    line,
    function: s.function[i]!,
    callee: s.callee[i]!,
    kind: s.kind[i]!,
    share: s.share[i]!,
    onWork: sums(s.on_work[i]!),
    onSpan: sums(s.on_span[i]!),
    whatIf: s.what_if[i]!,
    advice: s.advice[i] ?? "",
    text: `${s.file[i]!}:${line}\n${s.function[i]!}\n${s.callee[i]!}`.toLowerCase(),
  }));
}

export function sorted(list: readonly Site[], key: string, descending: boolean): Site[] {
  const sign = descending ? -1 : 1;
  const column = COLUMNS.find((c) => c.key === key);
  const name = (s: Site): string => `${s.file}:${String(s.line).padStart(7, "0")} ${s.callee}`;
  return [...list].sort((a, b) => {
    const d = column ? column.value(a) - column.value(b) : 0;
    if (d !== 0) return sign * d;
    return (column ? 1 : sign) * (name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : 0);
  });
}
