// The shape of the page's JSON section, as `summary.rs` writes it, and how sections are read.

/** Version of the agreement with `summary.rs`. */
export const VERSION = 1;

export interface Summary {
  version: number;
  modes: {
    growth?: { runs: RunData[] };
    count?: { runs: CountData[] };
    idle?: { runs: IdleData[] };
    causal?: { runs: CausalData[] };
    span?: { runs: SpanData[] };
  };
}

/** The first fields of every run. */
export interface RunHead {
  program: string;
  command: string[];
  exit_code: number | null;
  exit_signal: number | null;
  started_unix_ms: number;
  wall_ns: number;
  cpu_ns: number;
  problems: string[];
}

export interface CausalData extends RunHead {
  diagnoses: string[];
  backend: string;
  period_ns: number;
  samples: number;
  in_scope: number;
  /** Name, kind, visits. */
  points: [string, string, number][];
  targets: CausalTarget[];
  results: CausalResult[];
  experiments: { target: number[]; permille: number[]; start_ms: number[]; period_ns: (number | null)[][] };
}

export interface CausalTarget {
  name: string;
  function: string;
  file: string;
  line: number;
  samples: number;
  /** First line shown, and the lines. */
  source: [number, string[]];
}

export interface CausalResult {
  target: number;
  point: number;
  share: number;
  /** Speedup, gain, low and high end of its interval, experiments. */
  levels: [number, number, number | null, number | null, number][];
  slope: number;
  slope_low: number | null;
  slope_high: number | null;
  phase_factor: number;
  verdict: "worth it" | "no effect" | "contention" | "unknown";
  reason: string;
}

export interface IdleTree {
  parent: number[];
  name: number[];
  kind: number[];
  class: number[];
  file: number[];
  line: number[];
  own: Five[];
}

export interface IdleData extends RunHead {
  cores: number;
  threads: number;
  samples: number;
  lost: number;
  span_ns: number;
  nobody_ns: number;
  preempted_ns: number;
  total: Five;
  stitched: number | null;
  strings: string[];
  logical: IdleTree;
  physical: IdleTree;
  /** Function, word, sentence. */
  advice: [string, string, string][];
  locks: {
    kind: string;
    address: string;
    wait_ns: number;
    contended: number;
    acquisitions: number;
    handed_over_ns: number;
    waiter: string[];
    holders: [string[], number][];
  }[];
  sources: { file: string; lines: [number, number, number, string][] }[];
}

export interface SpanData extends RunHead {
  model: string;
  unit: "ns" | "instructions" | "units";
  work: number;
  span: number;
  burdened_span: number;
  burden: number;
  spawns: number;
  threads: number;
  repaired: number;
  /** Processors, at least, at most. */
  bounds: [number, number, number][];
  /** Processors, wall time, speedup over one processor. */
  measured: [number, number, number | null][];
  sites: {
    file: string[];
    line: number[];
    function: string[];
    callee: string[];
    kind: string[];
    share: number[];
    /** Count, work and span of top call site, top caller and local. */
    on_work: number[][];
    on_span: number[][];
    what_if: [number, number, number][];
    advice: (string | null)[];
  };
  /** Site, length, the part that is the site's own, strands. */
  path: [number, number, number, number][];
  excerpts: { routine: number; start: number; lines: string[] }[];
}

export interface RunData extends RunHead {
  build_id: string;
  metric: "rms" | "trms";
  cost: "blocks" | "instructions" | "accesses" | "time";
  cell_bytes: number;
  size_error: number;
  activations: number;
  cost_total: number;
  input_volume: number;
  thread_induced_share: number;
  external_share: number;
  factors: number[];
  unextrapolated_share: number[];
  /** Who overtakes whom, by position, at which factor, at the earliest and at the latest. */
  overtakes: [number, number, number, number, number | null][];
  strings: string[];
  routines: RoutineColumns;
  excerpts: { routine: number; start: number; lines: string[] }[];
}

/** Instructions, blocks, loads, stores, calls. */
export type Five = [number, number, number, number, number];

export interface CountData extends RunHead {
  threads: number;
  total: Five;
  by_thread: [number, Five][];
  functions: { name: string[]; object: string[]; file: string[]; line: number[]; calls: number[]; own: number[]; all: number[] };
  functions_left_out: number;
}

export interface RoutineColumns {
  id: string[];
  name: string[];
  mangled: (string | null)[];
  object: number[];
  address: (string | null)[];
  file: number[];
  line: number[];
  threads: number[][];
  /** Thread id, calls, cumulative cost. */
  by_thread: [number, number, number][][];
  calls: number[];
  cost_total: number[];
  cost_self: number[];
  share: number[];
  first_reads: number[];
  thread_induced: number[];
  external: number[];
  points: number[];
  n_min: number[];
  n_max: number[];
  block_bytes: number[];
  has_forecast: number[];
  fit: FitColumns;
  fit_self: FitColumns;
}

export interface FitColumns {
  class: (number | null)[];
  power: number[];
  terms: TermData[][];
  formula: string[];
  exponent: (number | null)[];
  exponent_low: (number | null)[];
  exponent_high: (number | null)[];
  confidence: (number | null)[];
  spread: (number | null)[];
  outliers: number[];
  alternatives: [string, number][][];
  verdict: number[];
  reason: number[];
  pieces: { routine: number; from: number; to: number; class: string; power: number; formula: string; terms: TermData[] }[];
}

/** Class, its K, coefficient, shift, rate. */
export type TermData = [string, number, number, number, number];

/** A reason for which the page cannot be shown, for the user to read. */
export class Unreadable extends Error {}

/** Resolves when the whole file has been read. */
function parsed(): Promise<void> {
  if (document.readyState !== "loading") return Promise.resolve();
  return new Promise((resolve) => document.addEventListener("DOMContentLoaded", () => resolve(), { once: true }));
}

/**
 * The bytes of a section, unpacked. A late section lies behind the script: it is there, and whole, only when the
 * browser has read the file to its end.
 */
export async function section(id: string, late = false): Promise<Uint8Array<ArrayBuffer>> {
  if (late) await parsed();
  const element = document.getElementById("farsight-" + id);
  if (!element) throw new Unreadable(`This file is not whole: its section "${id}" is missing.`);
  if (typeof DecompressionStream === "undefined") {
    throw new Unreadable(
      "This browser is too old to unpack the report. Chromium 80, Firefox 113 and Safari 16.4 or later can.",
    );
  }
  const packed = base64(element.textContent ?? "");
  // The text has served: megabytes of it would stay in the document.
  element.textContent = "";
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  try {
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    throw new Unreadable(`This file is damaged: its section "${id}" cannot be unpacked.`);
  }
}

export async function summary(): Promise<Summary> {
  const parsed = JSON.parse(new TextDecoder().decode(await section("summary"))) as Summary;
  if (parsed.version !== VERSION) throw new Unreadable(`This file holds data of version ${parsed.version}.`);
  return parsed;
}

function base64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as { fromBase64?: (s: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}
