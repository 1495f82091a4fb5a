// Small runs for the tests, in the shape in which the page gets them.

import type { FitColumns, RunData } from "../src/data.ts";
import { Run } from "../src/growth/model.ts";

export interface Made {
  name: string;
  class?: string | null;
  power?: number;
  share?: number;
  verdict?: number;
  object?: string;
  id?: string;
  cost?: number;
  points?: number;
  /** Shares at the factors 1, 10, 100, 1000. */
  forecast?: number[];
}

export function run(routines: Made[], index = 0, change: Partial<RunData> = {}): Run {
  const strings = ["", ...new Set(routines.flatMap((r) => [r.object ?? "/bin/x", r.class ?? "n"]))];
  const column = <T>(f: (r: Made, i: number) => T): T[] => routines.map(f);
  const fit = (): FitColumns => ({
    class: column((r) => (r.class === null ? null : strings.indexOf(r.class ?? "n"))),
    power: column((r) => r.power ?? 0),
    terms: column((r) => (r.class === null ? [] : [["1", 0, 5, 0, 1], [r.class ?? "n", r.power ?? 0, 2, 0, 1]])),
    formula: column(() => "5 + 2·n"),
    exponent: column(() => 1),
    exponent_low: column(() => 0.9),
    exponent_high: column(() => 1.1),
    confidence: column(() => 0.9),
    spread: column(() => 0.1),
    outliers: column(() => 0),
    alternatives: column(() => []),
    verdict: column((r) => r.verdict ?? (r.class === null ? 2 : 0)),
    reason: column(() => 0),
    pieces: [],
  });
  const data: RunData = {
    program: "/bin/x", build_id: "", command: ["/bin/x"], exit_code: 0, exit_signal: null, started_unix_ms: 0, wall_ns: 1,
    cpu_ns: 1, problems: [], metric: "trms", cost: "blocks", cell_bytes: 4, size_error: 0, activations: 1, cost_total: 100,
    input_volume: 1, thread_induced_share: 0, external_share: 0, factors: [1, 10, 100, 1000],
    unextrapolated_share: [0, 0, 0, 0], overtakes: [], strings, excerpts: [],
    routines: {
      id: column((r) => r.id ?? r.name),
      name: column((r) => r.name),
      mangled: column(() => null),
      object: column((r) => strings.indexOf(r.object ?? "/bin/x")),
      address: column(() => null),
      file: column(() => 0),
      line: column(() => 0),
      threads: column(() => [1]),
      by_thread: column(() => []),
      calls: column((_, i) => 10 * (i + 1)),
      cost_total: column((r) => r.cost ?? 10),
      cost_self: column(() => 5),
      share: column((r) => r.share ?? 0.1),
      first_reads: column(() => 1),
      thread_induced: column(() => 0),
      external: column(() => 0),
      points: column((r) => r.points ?? 0),
      n_min: column(() => 1),
      n_max: column(() => 9),
      block_bytes: column(() => 1),
      has_forecast: column((r) => (r.forecast ? 1 : 0)),
      fit: fit(),
      fit_self: fit(),
    },
    ...change,
  };
  const forecasts = routines.flatMap((r) => (r.forecast ? [r.forecast, r.forecast, r.forecast, r.forecast].flat() : []));
  return new Run(data, Float32Array.from(forecasts), index);
}
