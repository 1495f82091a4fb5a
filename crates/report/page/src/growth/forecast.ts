// Reading the forecast between the factors that it was computed at. Nothing is forecast here: the analysis did.

import type { Routine, Run } from "./model.ts";

/** A place on the grid of factors: between `i` and `i + 1`, at the fraction `t` of their logarithms. */
export interface Place {
  readonly i: number;
  readonly t: number;
}

export function place(factors: readonly number[], factor: number): Place {
  const last = factors.length - 1;
  if (last < 1 || factor <= factors[0]!) return { i: 0, t: 0 };
  if (factor >= factors[last]!) return { i: last - 1, t: 1 };
  let i = 0;
  while (factors[i + 1]! < factor) i++;
  const low = Math.log(factors[i]!);
  return { i, t: (Math.log(factor) - low) / (Math.log(factors[i + 1]!) - low) };
}

/** Interpolates on log-log axes, on which growth is straight. */
export function read(column: ArrayLike<number>, { i, t }: Place): number {
  const low = column[i] ?? NaN;
  if (t === 0) return low;
  const high = column[i + 1] ?? low;
  if (t === 1) return high;
  if (low > 0 && high > 0) return low * (high / low) ** t;
  return low + (high - low) * t;
}

/** The share at a place; `NaN` when the routine's growth is unknown. */
export function shareAt(routine: Routine, at: Place): number {
  return routine.forecast ? read(routine.forecast.share, at) : NaN;
}

/** One routine's share passing another's as the input grows. */
export interface Overtake {
  readonly routine: Routine;
  readonly passes: Routine;
  /** Factor at which the shares are equal. */
  readonly at: number;
  /** What the intervals allow; the latest is `null` when it may not happen at all. */
  readonly earliest: number;
  readonly latest: number | null;
}

/**
 * Who has passed whom between 1 times and `factor` times the input: per overtaker the largest routine that it
 * passes, the overtaker with the largest share first.
 */
export function overtakes(run: Run, factor: number): Overtake[] {
  const best = new Map<Routine, Overtake>();
  for (const [rising, overtaken, at, earliest, latest] of run.data.overtakes) {
    const routine = run.routines[rising];
    const passes = run.routines[overtaken];
    if (!routine || !passes || at > factor) continue;
    const before = best.get(routine);
    if (!before || passes.share > before.passes.share) best.set(routine, { routine, passes, at, earliest, latest });
  }
  const to = place(run.data.factors, factor);
  return [...best.values()].sort((x, y) => shareAt(y.routine, to) - shareAt(x.routine, to));
}

/** Positions, from 1, by share at a place, indexed by the routines' ranks; 0 where the growth is unknown. */
export function positions(run: Run, at: Place): Uint32Array {
  const shares = Float64Array.from(run.routines, (r) => shareAt(r, at));
  const known = run.routines.filter((r) => r.forecast !== null).map((r) => r.rank);
  known.sort((a, b) => shares[b]! - shares[a]! || a - b);
  const out = new Uint32Array(run.routines.length);
  known.forEach((rank, i) => (out[rank] = i + 1));
  return out;
}
