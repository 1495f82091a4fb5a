// The ranges and divisions of axes.

/** What the y axis is asked to be. */
export interface Scale {
  readonly logY: boolean;
  readonly yMax?: number;
  readonly yFree?: boolean;
}

/** Zooms are taken as they are; the whole range gets some air. */
export function rangeX(min: number, max: number, first: number, last: number, log: boolean): [number, number] {
  if (min == null || max == null) return log ? [1, 10] : [0, 1];
  if (min !== first || max !== last) return min < max ? [min, max] : [min - 0.5, max + 0.5];
  if (log) return [min / 1.15, max * 1.15];
  const air = (max - min) * 0.02 || Math.max(1, max * 0.1);
  return [min >= 0 && min < max * 0.25 ? 0 : min - air, max + air];
}

export function rangeY(min: number, max: number, spec: Scale): [number, number] {
  if (min == null || max == null || !Number.isFinite(min) || !Number.isFinite(max)) return spec.logY ? [1, 10] : [0, 1];
  if (spec.logY) {
    const low = min > 0 ? min : max > 0 ? max / 1e3 : 1;
    return [low / 1.3, Math.max(max, low * 2) * 1.3];
  }
  if (spec.yMax !== undefined) return [0, spec.yMax];
  const low = spec.yFree || min < 0 ? min - (max - min) * 0.06 : 0;
  return [low, max + (max - low) * 0.06 || 1];
}

/** Powers of ten, or 1, 2, 5 times them, or round steps: as many as a short range needs. */
export function logSplits(min: number, max: number): number[] {
  const decades = Math.log10(max / min);
  const out: number[] = [];
  if (!(decades > 0) || !Number.isFinite(decades)) return out;
  if (decades < 0.7) {
    const raw = (max - min) / 5;
    const base = 10 ** Math.floor(Math.log10(raw));
    const step = base * ([1, 2, 5, 10].find((m) => m * base >= raw) ?? 10);
    for (let i = Math.ceil(min / step); i * step <= max; i++) out.push(i * step);
    return out;
  }
  const every = Math.max(1, Math.ceil(decades / 8));
  const digits = decades < 1.6 ? [1, 2, 5] : decades < 3.3 ? [1, 3] : [1];
  for (let e = Math.floor(Math.log10(min)); e <= Math.ceil(Math.log10(max)); e++) {
    if (e % every !== 0) continue;
    for (const d of digits) {
      const v = e >= 0 ? d * 10 ** e : d / 10 ** -e;
      if (v >= min && v <= max) out.push(v);
    }
  }
  return out;
}
