// What the growth views work with: runs and routines as objects over the columns of the data.

import { classOf, type Growth } from "../classes.ts";
import type { FitColumns, RunData, TermData } from "../data.ts";
import { basename } from "../format.ts";
import { decode, decodeMeans, type Points } from "./points.ts";

export type Verdict = "confident" | "tentative" | "unknown";
const VERDICTS: readonly Verdict[] = ["confident", "tentative", "unknown"];

/** One term of a curve: `coefficient · g(rate · (n − shift))`, nothing below `shift`. */
export interface Term {
  readonly growth: Growth;
  readonly coefficient: number;
  readonly shift: number;
  readonly rate: number;
}

export interface Piece {
  readonly from: number;
  readonly to: number;
  readonly growth: Growth;
  readonly formula: string;
  readonly terms: readonly Term[];
}

export interface Fit {
  readonly growth: Growth | null;
  readonly terms: readonly Term[];
  readonly formula: string;
  readonly exponent: number;
  readonly exponentLow: number;
  readonly exponentHigh: number;
  readonly confidence: number;
  readonly spread: number;
  readonly outliers: number;
  /** Other classes that explain the data, with their probabilities. */
  readonly alternatives: readonly (readonly [string, number])[];
  readonly verdict: Verdict;
  readonly reason: string;
  readonly pieces: readonly Piece[];
}

export interface Routine {
  /** Position in the analysis: 0 is what to look at first. */
  readonly rank: number;
  /** In links, and equal for the same routine of other runs. */
  readonly id: string;
  readonly name: string;
  readonly mangled: string;
  readonly object: string;
  readonly library: string;
  readonly address: string | null;
  readonly file: string;
  readonly line: number;
  readonly threads: readonly number[];
  readonly byThread: readonly (readonly [id: number, calls: number, cost: number])[];
  readonly calls: number;
  readonly cost: number;
  readonly costSelf: number;
  readonly share: number;
  readonly firstReads: number;
  readonly threadInduced: number;
  readonly external: number;
  readonly pointCount: number;
  readonly nMin: number;
  readonly nMax: number;
  readonly fit: Fit;
  readonly fitSelf: Fit;
  /** Where its forecast is, `null` when its growth is unknown. */
  readonly forecast: Forecast | null;
  readonly excerpt: { readonly start: number; readonly lines: readonly string[] } | null;
  /** In lower case, what a search looks through. */
  readonly haystack: string;
}

/** Columns with one entry per factor of the run. */
export interface Forecast {
  readonly cost: Float32Array;
  readonly share: Float32Array;
  readonly low: Float32Array;
  readonly high: Float32Array;
}

export class Run {
  readonly routines: readonly Routine[];
  readonly byId: ReadonlyMap<string, Routine>;
  private readonly offsets: Float64Array;
  private points: Uint8Array | null = null;
  private readonly decoded = new Map<Routine, Points>();

  constructor(
    readonly data: RunData,
    forecasts: Float32Array,
    /** Position among the runs of the page. */
    readonly index: number,
  ) {
    const c = data.routines;
    const width = data.factors.length;
    const pieces = piecesOf(c.fit);
    const piecesSelf = piecesOf(c.fit_self);
    const excerpts = new Map(data.excerpts.map((e) => [e.routine, e]));
    const seen = new Map<string, number>();
    this.offsets = new Float64Array(c.id.length);
    let offset = 0;
    let forecast = 0;
    this.routines = c.id.map((key, i) => {
      this.offsets[i] = offset;
      offset += c.block_bytes[i]!;
      let own: Forecast | null = null;
      if (c.has_forecast[i]) {
        const column = (k: number) => forecasts.subarray((forecast + k) * width, (forecast + k + 1) * width);
        own = { cost: column(0), share: column(1), low: column(2), high: column(3) };
        forecast += 4;
      }
      const earlier = seen.get(key) ?? 0;
      seen.set(key, earlier + 1);
      const object = data.strings[c.object[i]!] ?? "";
      const file = data.strings[c.file[i]!] ?? "";
      const name = c.name[i]!;
      const mangled = c.mangled[i] ?? name;
      return {
        rank: i,
        // Static functions of one name in one object: told apart by their order.
        id: earlier ? `${key}-${earlier + 1}` : key,
        name,
        mangled,
        object,
        library: basename(object),
        address: c.address[i] ?? null,
        file,
        line: c.line[i]!,
        threads: c.threads[i]!,
        byThread: c.by_thread[i]!,
        calls: c.calls[i]!,
        cost: c.cost_total[i]!,
        costSelf: c.cost_self[i]!,
        share: c.share[i]!,
        firstReads: c.first_reads[i]!,
        threadInduced: c.thread_induced[i]!,
        external: c.external[i]!,
        pointCount: c.points[i]!,
        nMin: c.n_min[i]!,
        nMax: c.n_max[i]!,
        fit: fitOf(c.fit, i, data.strings, pieces.get(i) ?? []),
        fitSelf: fitOf(c.fit_self, i, data.strings, piecesSelf.get(i) ?? []),
        forecast: own,
        excerpt: excerpts.get(i) ?? null,
        haystack: `${name}\n${mangled}\n${object}\n${file}`.toLowerCase(),
      };
    });
    this.byId = new Map(this.routines.map((r) => [r.id, r]));
  }

  /** The unit of costs, for labels. */
  get unit(): string {
    return { blocks: "blocks", instructions: "instructions", accesses: "accesses", time: "ns" }[this.data.cost];
  }

  setPoints(bytes: Uint8Array): void {
    this.points = bytes;
  }

  get hasPoints(): boolean {
    return this.points !== null;
  }

  /** The points of a routine; empty until their section has been unpacked. */
  pointsOf(routine: Routine): Points {
    let points = this.decoded.get(routine);
    if (!points) {
      const length = this.points ? routine.pointCount : 0;
      points = decode(this.points ?? new Uint8Array(1), this.points ? this.offsets[routine.rank]! : 0, length);
      if (this.points) {
        // A few at a time: the largest routines decode in milliseconds, and all of them would be 50 MB.
        if (this.decoded.size > 64) this.decoded.clear();
        this.decoded.set(routine, points);
      }
    }
    return points;
  }

  meansOf(routine: Routine): { n: Float64Array; mean: Float64Array } {
    if (!this.points) return { n: new Float64Array(0), mean: new Float64Array(0) };
    return decodeMeans(this.points, this.offsets[routine.rank]!, routine.pointCount);
  }
}

function piecesOf(columns: FitColumns): Map<number, Piece[]> {
  const out = new Map<number, Piece[]>();
  for (const p of columns.pieces) {
    const list = out.get(p.routine) ?? [];
    list.push({ from: p.from, to: p.to, growth: { class: classOf(p.class), power: p.power }, formula: p.formula, terms: p.terms.map(termOf) });
    out.set(p.routine, list);
  }
  return out;
}

function termOf([key, power, coefficient, shift, rate]: TermData): Term {
  return { growth: { class: classOf(key), power }, coefficient, shift, rate };
}

function fitOf(c: FitColumns, i: number, strings: string[], pieces: Piece[]): Fit {
  const key = c.class[i];
  return {
    growth: key === null || key === undefined ? null : { class: classOf(strings[key]!), power: c.power[i]! },
    terms: c.terms[i]!.map(termOf),
    formula: c.formula[i]!,
    exponent: c.exponent[i] ?? NaN,
    exponentLow: c.exponent_low[i] ?? NaN,
    exponentHigh: c.exponent_high[i] ?? NaN,
    confidence: c.confidence[i] ?? NaN,
    spread: c.spread[i] ?? 0,
    outliers: c.outliers[i]!,
    alternatives: c.alternatives[i]!,
    verdict: VERDICTS[c.verdict[i]!] ?? "unknown",
    reason: strings[c.reason[i]!] ?? "",
    pieces,
  };
}

/**
 * The fitted cost at size n, by the regime that n falls into: a regime ends where the next one begins. `NaN` when
 * unknown. The same as `Fit::predict`.
 */
export function costAt(fit: Fit, n: number): number {
  if (!fit.growth) return NaN;
  let terms = fit.pieces[0]?.terms ?? fit.terms;
  for (const piece of fit.pieces) if (n >= piece.from) terms = piece.terms;
  let cost = 0;
  for (const t of terms) {
    if (t.shift > 0 && n <= t.shift) continue;
    cost += t.coefficient * t.growth.class.g(Math.max(0, t.rate * (n - t.shift)), t.growth.power);
  }
  return Math.max(0, cost);
}

/** The factor by which 95 % of the mean costs lie above or below the curve at most. */
export function bandFactor(fit: Fit): number {
  return (1 + Math.max(0, fit.spread)) ** 1.96;
}
