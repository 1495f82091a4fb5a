// Numbers and names as text. Counts are abbreviated with SI prefixes to three digits; what is cut off is said.

/** Numbers stay with their units. */
const NBSP = "\u00a0";
const PREFIXES = ["", "k", "M", "G", "T", "P", "E", "Z", "Y"];

/** A count or cost: 1234567 as "1.23 M". The space does not break. */
export function si(value: number, unit = ""): string {
  if (!Number.isFinite(value)) return "–";
  const sign = value < 0 ? "−" : "";
  let v = Math.abs(value);
  let p = 0;
  while (v >= 999.5 && p < PREFIXES.length - 1) {
    v /= 1000;
    p++;
  }
  if (v >= 999.5) return `${sign}${Math.abs(value).toExponential(1)}${unit && NBSP + unit}`;
  const digits = p === 0 && Number.isInteger(v) ? v.toFixed(0) : significant(v);
  const suffix = (PREFIXES[p] ?? "") + unit;
  return sign + digits + (suffix && NBSP + suffix);
}

/** For axes: as short as it can be, "20k". */
export function tick(value: number): string {
  if (value === 0) return "0";
  const abs = Math.abs(value);
  if (abs >= 1e27 || abs < 1e-3) return value.toExponential(0).replace("e+", "e");
  return si(value).replace(NBSP, "").replace(/\.0+(?=\D|$)/, "").replace(/(\.\d*?)0+(?=\D|$)/, "$1");
}

function significant(v: number): string {
  if (v === 0) return "0";
  if (v >= 99.95) return v.toFixed(0);
  if (v >= 9.995) return v.toFixed(1);
  if (v >= 0.9995) return v.toFixed(2);
  return v.toPrecision(2);
}

/** Every digit, for tooltips; the abbreviation where doubles no longer know them all. */
export function exact(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) return `≈${NBSP}` + si(value);
  return Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** A share of the whole: 0.0341 as "3.4 %". */
export function percent(share: number): string {
  if (!Number.isFinite(share)) return "–";
  const p = share * 100;
  const abs = Math.abs(p);
  if (p === 0) return `0${NBSP}%`;
  if (abs < 0.05) return (p < 0 ? `>${NBSP}−` : `<${NBSP}`) + `0.1${NBSP}%`;
  if (abs >= 99.95 || abs >= 9.95) return `${minus(p.toFixed(0))}${NBSP}%`;
  return `${minus(p.toFixed(1))}${NBSP}%`;
}

/** A change in percentage points, always signed. */
export function points(delta: number): string {
  if (!Number.isFinite(delta)) return "–";
  const p = delta * 100;
  if (Math.abs(p) < 0.05) return "±0";
  return (p > 0 ? "+" : "−") + (Math.abs(p) >= 9.95 ? Math.abs(p).toFixed(0) : Math.abs(p).toFixed(1));
}

/** A ratio: "1.4×", "×1000" never. */
export function times(factor: number): string {
  if (!Number.isFinite(factor)) return "–";
  if (factor >= 99.95) return `${Math.round(factor)}×`;
  if (factor >= 9.95) return `${trimZeros(factor.toFixed(1))}×`;
  return `${trimZeros(factor.toFixed(factor < 0.1 ? 3 : 2))}×`;
}

export function trimZeros(s: string): string {
  return s.includes(".") ? s.replace(/\.?0+$/, "") : s;
}

function minus(s: string): string {
  return s.replace("-", "−");
}

export function duration(ns: number): string {
  if (ns <= 0) return "";
  if (ns < 1e3) return `${ns}${NBSP}ns`;
  if (ns < 1e6) return `${significant(ns / 1e3)}${NBSP}µs`;
  if (ns < 1e9) return `${significant(ns / 1e6)}${NBSP}ms`;
  const s = ns / 1e9;
  if (s < 120) return `${significant(s)}${NBSP}s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 120) return `${minutes}${NBSP}min${NBSP}${Math.round(s - minutes * 60)}${NBSP}s`;
  return `${Math.floor(minutes / 60)}${NBSP}h${NBSP}${minutes % 60}${NBSP}min`;
}

export function moment(unixMs: number): string {
  if (unixMs <= 0) return "";
  return new Date(unixMs).toISOString().replace("T", " ").slice(0, 16) + " UTC";
}

export function count(n: number, one: string, many = one + "s"): string {
  return `${exact(n)} ${n === 1 ? one : many}`;
}

export function basename(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1) || path;
}

/**
 * Foreign text made visible: characters that would move, hide or reorder other text are spelled out, so that a
 * name reads as the characters that it has. The result is still only ever inserted as text.
 */
export function visible(name: string, max = 400): string {
  if (name === "") return "(no name)";
  const cut = name.length > max ? name.slice(0, max) : name;
  const shown = cut.replace(
    // Controls, line and paragraph separators, bidirectional controls, zero-width characters, surrogates alone.
    /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (c) => (c === "\n" ? "⏎" : c === "\t" ? "⇥" : `\\u{${c.charCodeAt(0).toString(16)}}`),
  );
  return name.length > max ? `${shown}… (${exact(name.length)} characters)` : shown;
}

/** A command line as one would type it. */
export function shell(command: readonly string[]): string {
  return command.map((w) => (/^[\w@%+=:,./-]+$/.test(w) ? w : `'${w.replace(/'/g, `'\\''`)}'`)).join(" ");
}

/** The signals that a program dies of, by number on Linux x86-64. */
const SIGNALS: Record<number, string> = {
  1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
  9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
};

export function exitText(code: number | null, signal: number | null): string {
  if (signal !== null) return `killed by ${SIGNALS[signal] ?? `signal ${signal}`}`;
  if (code !== null) return `exit ${code}`;
  return "exit not known";
}
