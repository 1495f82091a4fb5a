// What the plots of one routine draw: the points of one run, or of two on one x axis, and the fits.

import type { Curve, Marker, Series } from "../chart.ts";
import { growthLabel } from "../classes.ts";
import { bandFactor, costAt, type Fit, type Routine, type Run } from "./model.ts";
import { means, type Points } from "./points.ts";
import type { Row } from "./rows.ts";
import type { Session } from "./session.ts";

export interface Side {
  readonly run: Run;
  readonly routine: Routine;
  readonly points: Points;
  readonly fit: Fit;
  /** "A" or "B" when two are shown. */
  readonly tag: "" | "A" | "B";
}

export interface Subject {
  readonly row: Row;
  readonly sides: readonly Side[];
  /** All sizes, ascending. */
  readonly x: Float64Array;
  readonly self: boolean;
}

export function subject(session: Session, row: Row, self: boolean): Subject {
  const sides: Side[] = [];
  const side = (run: Run | null, routine: Routine | null, tag: "A" | "B"): void => {
    if (!run || !routine) return;
    const fit = self ? routine.fitSelf : routine.fit;
    sides.push({ run, routine, points: run.pointsOf(routine), fit, tag: session.b ? tag : "" });
  };
  side(session.a, row.a, "A");
  side(session.b, row.b, "B");
  return { row, sides, x: union(sides.map((s) => s.points.n)), self };
}

/** The sizes of all, each once, ascending. */
export function union(lists: readonly Float64Array[]): Float64Array {
  if (lists.length === 1) return lists[0]!;
  const all = Float64Array.from(lists.flatMap((l) => [...l])).sort();
  return all.filter((v, i) => i === 0 || v !== all[i - 1]);
}

/** A column of one side, spread over the sizes of all. */
function spread(subject: Subject, side: Side, values: ArrayLike<number>): ArrayLike<number | null> {
  if (subject.sides.length === 1) return values;
  const out: (number | null)[] = [];
  let i = 0;
  for (const x of subject.x) out.push(i < side.points.length && side.points.n[i] === x ? values[i++]! : null);
  return out;
}

/** One series per side. A is drawn in the plain marker and colour, B in a hollow one of its own. */
export function seriesOf(
  s: Subject,
  label: string,
  values: (side: Side) => ArrayLike<number>,
  marker: Marker,
  color: string,
  options: Partial<Series> = {},
): Series[] {
  return s.sides.map((side) => ({
    label: side.tag ? `${label} ${side.tag}` : label,
    y: spread(s, side, values(side)),
    color: side.tag === "B" ? "--run-b" : color,
    marker: side.tag === "B" ? "diamond" : marker,
    ...options,
  }));
}

export function costSeries(s: Subject): Series[] {
  const minimum = (side: Side) => (s.self ? side.points.selfMin : side.points.min);
  const maximum = (side: Side) => (s.self ? side.points.selfMax : side.points.max);
  const two = s.sides.length > 1;
  // The average is drawn last: where a size has one call, all three coincide.
  return [
    ...seriesOf(s, "worst", maximum, "up", "--worst", { hidden: two, title: "Dearest call of each size" }),
    ...seriesOf(s, "best", minimum, "down", "--best", { hidden: two, title: "Cheapest call of each size" }),
    ...seriesOf(s, "average", (side) => means(side.points, s.self), "dot", "--average", { title: "Mean cost of each size" }),
  ];
}

export function fitCurves(s: Subject): Curve[] {
  return s.sides
    .filter((side) => side.fit.growth)
    .map((side) => ({
      label: `fit${side.tag && " " + side.tag} ${growthLabel(side.fit.growth)}`,
      f: (n: number) => costAt(side.fit, n),
      band: bandFactor(side.fit),
      color: side.tag === "B" ? "--run-b" : "--fit",
      ...(side.fit.verdict === "tentative" ? { dash: [6, 4] } : {}),
      from: side.routine.nMin,
      to: side.routine.nMax,
      title: `Fitted curve; the band holds 95 % of the mean costs (up to ${((bandFactor(side.fit) - 1) * 100).toFixed(0)} % more)`,
    }));
}
