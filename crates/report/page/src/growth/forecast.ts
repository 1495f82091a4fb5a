// Reading the forecast between the factors that it was computed at. Nothing is forecast here: the analysis did.

import type { Forecast, Routine, Run } from "./model.ts";

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
}

/** Smaller shares are noise to a reader. */
const SHARE_MIN = 0.02;
/** Shares closer than this, relatively, are a tie. */
const MARGIN = 1.05;

/**
 * Who has passed whom between 1 times and `factor` times the input: per overtaker the largest routine that it
 * passes, the overtaker with the largest share first.
 */
export function overtakes(run: Run, factor: number): Overtake[] {
  const factors = run.data.factors;
  const to = place(factors, factor);
  const known = run.routines
    .filter((r) => r.forecast !== null)
    .map((r) => ({ r, f: r.forecast as Forecast, now: r.forecast!.share[0]!, then: shareAt(r, to) }))
    .filter((x) => Math.max(x.now, x.then) >= SHARE_MIN)
    .sort((a, b) => b.then - a.then)
    .slice(0, 60);
  const out: Overtake[] = [];
  for (const up of known) {
    if (up.then < SHARE_MIN) continue;
    let best: { x: (typeof known)[number]; at: number } | null = null;
    for (const down of known) {
      if (down.now < up.now * MARGIN || up.then < down.then * MARGIN) continue;
      if (!best || down.now > best.x.now) best = { x: down, at: crossing(factors, up.f, down.f, to.i) };
    }
    if (best) out.push({ routine: up.r, passes: best.x.r, at: Math.min(best.at, factor) });
  }
  return out;
}

/** The factor at which the share of `up` first reaches that of `down`. */
function crossing(factors: readonly number[], up: Forecast, down: Forecast, last: number): number {
  for (let i = 0; i <= last && i + 1 < factors.length; i++) {
    const before = Math.log(down.share[i]! / up.share[i]!);
    const after = Math.log(down.share[i + 1]! / up.share[i + 1]!);
    if (before >= 0 && after <= 0 && before > after) {
      const t = before / (before - after);
      return factors[i]! * (factors[i + 1]! / factors[i]!) ** t;
    }
  }
  return factors[Math.min(last + 1, factors.length - 1)]!;
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
