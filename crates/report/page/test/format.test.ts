import assert from "node:assert/strict";
import { test } from "node:test";
import { duration, exact, exitText, percent, points, shell, si, tick, times, visible } from "../src/format.ts";

const plain = (s: string): string => s.replace(/[\u00a0\u202f]/g, " ");

test("counts are abbreviated to three digits", () => {
  const cases: [number, string][] = [
    [0, "0"], [7, "7"], [999, "999"], [999.6, "1.00 k"], [1000, "1.00 k"], [1234, "1.23 k"], [12_345, "12.3 k"],
    [999_999, "1.00 M"], [1.5e9, "1.50 G"], [2 ** 64, "18.4 E"], [-1234, "−1.23 k"], [0.25, "0.25"], [1e40, "1.0e+40"],
    [Infinity, "–"], [NaN, "–"],
  ];
  for (const [value, text] of cases) assert.equal(plain(si(value)), text);
  assert.equal(plain(si(1500, "B")), "1.50 kB");
});

test("ticks are short", () => {
  assert.deepEqual([0, 20_000, 1500, 0.5, 1e-5, 1e30, 100].map(tick), ["0", "20k", "1.5k", "0.5", "1e-5", "1e30", "100"]);
});

test("exact counts group digits, and say when they are not exact", () => {
  assert.equal(plain(exact(1234567)), "1 234 567");
  assert.equal(plain(exact(2 ** 60)), "≈ 1.15 E");
});

test("shares", () => {
  assert.deepEqual([0, 0.0001, 0.0341, 0.096, 0.5, 1, NaN].map((v) => plain(percent(v))), ["0 %", "< 0.1 %", "3.4 %", "9.6 %", "50 %", "100 %", "–"]);
  assert.deepEqual([0.051, -0.2, 0.0001, NaN].map(points), ["+5.1", "−20", "±0", "–"]);
  assert.deepEqual([1, 1.5, 10, 12.25, 999.9, 0.045].map(times), ["1×", "1.5×", "10×", "12.3×", "1000×", "0.045×"]);
});

test("durations", () => {
  assert.deepEqual([0, 999, 1500, 2.5e6, 3.214e9, 125e9, 7300e9].map((v) => plain(duration(v))), ["", "999 ns", "1.50 µs", "2.50 ms", "3.21 s", "2 min 5 s", "2 h 1 min"]);
});

test("names show what they hide", () => {
  assert.equal(visible(""), "(no name)");
  assert.equal(visible("a\nb\tc\0d"), "a⏎b⇥c\\u{0}d");
  assert.equal(visible("\u202egnp.exe"), "\\u{202e}gnp.exe");
  assert.equal(visible("<img src=x onerror=alert(1)>"), "<img src=x onerror=alert(1)>");
  assert.match(visible("x".repeat(10_000), 50), /^x{50}… \(10.000 characters\)$/);
});

test("commands are quoted as a shell wants them", () => {
  assert.equal(shell(["/bin/wf", "-c", "a b", "it's"]), `/bin/wf -c 'a b' 'it'\\''s'`);
});

test("exits", () => {
  assert.deepEqual([exitText(0, null), exitText(null, 11), exitText(null, 64), exitText(null, null)], ["exit 0", "killed by SIGSEGV", "killed by signal 64", "exit not known"]);
});
