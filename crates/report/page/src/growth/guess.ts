// Curve bounding by guess ratio (Coppa et al., PLDI 2012, section 2.3): cost over g(n) rises when the cost grows
// faster than g, falls when it grows slower, and levels off when g is its growth.

import { classOf, growthLabel, type Growth } from "../classes.ts";
import { means } from "./points.ts";
import type { Side } from "./subject.ts";

/** The growth that the state names; that of the fit when it names none. */
export function guessed(key: string, power: number, fallback: Growth | null): Growth {
  if (!key) return fallback ?? { class: classOf("n"), power: 0 };
  try {
    return { class: classOf(key), power: key === "n^K" ? power : 0 };
  } catch {
    return { class: classOf("n"), power: 0 };
  }
}

/** Mean cost over g(n); no value where g is 0. */
export function ratios(side: Side, growth: Growth, self: boolean): (number | null)[] {
  const cost = means(side.points, self);
  return Array.from(cost, (c, i) => {
    const g = growth.class.g(side.points.n[i]!, growth.power);
    const ratio = c / g;
    return g > 0 && Number.isFinite(ratio) ? ratio : null;
  });
}

export type Trend = "rises" | "falls" | "level" | "unclear";

/** Slopes, on log-log axes, that are taken as level. */
const LEVEL = 0.1;
const POINTS_MIN = 5;
/** Sizes below this part of the largest are left out: constant costs bend the ratio there. */
const LARGE = 1 / 3;

/** How the ratio behaves on the larger sizes. */
export function trend(n: ArrayLike<number>, ratio: readonly (number | null)[]): Trend {
  const all: [number, number][] = [];
  ratio.forEach((r, i) => {
    if (r !== null && r > 0 && n[i]! > 0) all.push([Math.log(n[i]!), Math.log(r)]);
  });
  if (all.length < POINTS_MIN) return "unclear";
  const from = all[all.length - 1]![0] + Math.log(LARGE);
  const first = all.findIndex(([x]) => x >= from);
  const half = all.slice(Math.min(first, all.length - POINTS_MIN));
  const mean = (k: 0 | 1): number => half.reduce((sum, p) => sum + p[k], 0) / half.length;
  const [mx, my] = [mean(0), mean(1)];
  let [xx, xy] = [0, 0];
  for (const [x, y] of half) {
    xx += (x - mx) ** 2;
    xy += (x - mx) * (y - my);
  }
  if (xx === 0) return "unclear";
  const slope = xy / xx;
  return slope > LEVEL ? "rises" : slope < -LEVEL ? "falls" : "level";
}

export function trendWords(t: Trend, growth: Growth): string {
  const g = growthLabel(growth);
  switch (t) {
    case "rises":
      return `↗ The ratio rises: the cost grows faster than ${g}.`;
    case "falls":
      return `↘ The ratio falls: the cost grows slower than ${g}.`;
    case "level":
      return `→ The ratio levels off: ${g} bounds the cost.`;
    case "unclear":
      return "Too few sizes to see where the ratio goes.";
  }
}
