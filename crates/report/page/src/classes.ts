// The growth classes: their functions, order, labels and what they mean in words.

export interface Class {
  /** As the data and the JSON name it. */
  readonly key: string;
  /** As people write it. */
  readonly label: string;
  /** The function; for `n^K` of the given exponent. */
  readonly g: (n: number, k: number) => number;
  /** Asymptotic order for sorting; `n^K` sorts by its exponent. */
  readonly order: number;
  /** What happens when the input doubles. */
  readonly words: string;
}

/** The base of log n is 2 in all coefficients. */
const log = (n: number): number => Math.log2(Math.max(n, 1));

export const CLASSES: readonly Class[] = [
  { key: "1", label: "1", order: 0, g: () => 1, words: "Cost does not depend on the input size." },
  { key: "log n", label: "log n", order: 0.1, g: log, words: "Each doubling of the input adds the same small cost." },
  { key: "sqrt n", label: "√n", order: 0.5, g: (n) => Math.sqrt(n), words: "Four times the input doubles the cost." },
  { key: "n", label: "n", order: 1, g: (n) => n, words: "Twice the input costs twice as much." },
  { key: "n log n", label: "n log n", order: 1.1, g: (n) => n * log(n), words: "Twice the input costs a little more than twice as much." },
  { key: "n^1.5", label: "n^1.5", order: 1.5, g: (n) => n ** 1.5, words: "Twice the input costs 2.8 times as much." },
  { key: "n^2", label: "n²", order: 2, g: (n) => n * n, words: "Twice the input costs four times as much." },
  { key: "n^2 log n", label: "n² log n", order: 2.1, g: (n) => n * n * log(n), words: "Twice the input costs more than four times as much." },
  { key: "n^3", label: "n³", order: 3, g: (n) => n * n * n, words: "Twice the input costs eight times as much." },
  { key: "2^n", label: "2ⁿ", order: 1000, g: (n) => 2 ** n, words: "Each additional cell of input doubles the cost." },
  { key: "n^K", label: "n^K", order: NaN, g: (n, k) => n ** k, words: "" },
];

const BY_KEY = new Map(CLASSES.map((c) => [c.key, c]));

export function classOf(key: string): Class {
  const c = BY_KEY.get(key);
  if (!c) throw new Error(`unknown growth class ${key}`);
  return c;
}

/** A class with its parameter. */
export interface Growth {
  readonly class: Class;
  /** The K of `n^K`, 0 otherwise. */
  readonly power: number;
}

export function growthLabel(growth: Growth | null): string {
  if (!growth) return "unknown";
  return growth.class.key === "n^K" ? `n^${growth.power.toFixed(2)}` : growth.class.label;
}

export function growthOrder(growth: Growth | null): number {
  if (!growth) return -1;
  return growth.class.key === "n^K" ? growth.power : growth.class.order;
}

export function growthWords(growth: Growth): string {
  if (growth.class.key !== "n^K") return growth.class.words;
  return `Twice the input costs ${(2 ** growth.power).toFixed(1)} times as much.`;
}

/** How alarming a class is. Everything past n log n is "fast": it is what dominates large inputs. */
export type Pace = "slow" | "linear" | "fast" | "unknown";

export function pace(growth: Growth | null): Pace {
  if (!growth) return "unknown";
  const order = growthOrder(growth);
  if (order < 0.9) return "slow";
  return order <= 1.15 ? "linear" : "fast";
}

/** Shapes that stand beside the colours of the paces, so that colour never says it alone. */
export const PACE_GLYPH: Record<Pace, string> = { slow: "▽", linear: "●", fast: "▲", unknown: "?" };

export const PACE_WORDS: Record<Pace, string> = {
  slow: "slower than linear",
  linear: "linear or n log n",
  fast: "faster than n log n",
  unknown: "not known",
};
