import assert from "node:assert/strict";
import { test } from "node:test";
import { CLASSES, classOf, growthLabel, growthOrder, growthWords, pace } from "../src/classes.ts";
import { overtakes, place, positions, read } from "../src/growth/forecast.ts";
import { guessed, trend } from "../src/growth/guess.ts";
import { comparison, headline, type Part } from "../src/growth/headline.ts";
import { bandFactor, costAt, type Fit } from "../src/growth/model.ts";
import { decode, decodeMeans } from "../src/growth/points.ts";
import { classChanged, context, costRatio, filter, match, sort } from "../src/growth/rows.ts";
import { logSplits, rangeX, rangeY } from "../src/scale.ts";
import { DEFAULTS, fromHash, toHash } from "../src/state.ts";
import { run } from "./make.ts";

const text = (parts: readonly Part[]): string =>
  parts.map((p) => (typeof p === "string" ? p : "strong" in p ? p.strong : `[${p.routine.name}]`)).join("").replace(/\u00a0/g, " ");

test("classes grow in their order", () => {
  const named = CLASSES.filter((c) => c.key !== "n^K");
  for (let i = 1; i < named.length; i++) {
    assert.ok(named[i]!.order > named[i - 1]!.order);
    assert.ok(named[i]!.g(2000, 0) > named[i - 1]!.g(2000, 0), named[i]!.key);
  }
  assert.equal(classOf("n log n").g(8, 0), 24);
  assert.equal(classOf("n^K").g(4, 1.5), 8);
  assert.equal(classOf("log n").g(0, 0), 0);
  assert.throws(() => classOf("n!"));
  const power = { class: classOf("n^K"), power: 1.34 };
  assert.deepEqual([growthLabel(power), growthOrder(power), pace(power)], ["n^1.34", 1.34, "fast"]);
  assert.equal(growthWords(power), "Twice the input costs 2.5 times as much.");
  assert.deepEqual(["1", "n", "n log n", "n^1.5", "2^n"].map((k) => pace({ class: classOf(k), power: 0 })), ["slow", "linear", "linear", "fast", "fast"]);
  assert.equal(pace(null), "unknown");
});

test("points are decoded as they were encoded", () => {
  const f32 = (v: number): number[] => [...new Uint8Array(Float32Array.of(v).buffer)];
  // Two points, n = 5 and 205, after 2 bytes that are not theirs; recursive and induced.
  const bytes = Uint8Array.from([
    9, 9, 3, 5, 0xc8, 1, 2, 1, 24, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 10, 7, 4, 0, 6, 7, 3, 7, 0, 0, 24, 0,
    1, 2, 3, 4, ...f32(4), ...f32(0), ...f32(1.5), ...f32(0),
  ]);
  const p = decode(bytes, 2, 2);
  assert.deepEqual([...p.n], [5, 205]);
  assert.deepEqual([...p.calls], [2, 1]);
  assert.deepEqual([...p.sum], [24, 2 ** 64]);
  assert.deepEqual([[...p.min], [...p.max]], [[10, 7], [14, 7]]);
  assert.deepEqual([[...p.selfSum], [...p.selfMin], [...p.selfMax]], [[6, 7], [3, 7], [3, 7]]);
  assert.deepEqual([p.recursive, ...p.realSum], [true, 24, 0]);
  assert.deepEqual([[...p.threadInduced!], [...p.external!]], [[1, 2], [3, 4]]);
  assert.deepEqual([[...p.variance], [...p.selfVariance]], [[4, 0], [1.5, 0]]);
  assert.deepEqual(decodeMeans(bytes, 2, 2), { n: p.n, mean: Float64Array.of(12, 2 ** 64) });
});

const term = (key: string, coefficient: number) => ({ growth: { class: classOf(key), power: 0 }, coefficient, shift: 0, rate: 1 });

test("a fit is evaluated piece by piece, and by its last piece beyond", () => {
  const fit = {
    growth: { class: classOf("n"), power: 0 },
    terms: [term("1", 1), term("n", 2)],
    pieces: [
      { from: 1, to: 9, terms: [term("1", 50)] },
      // A gradual onset: the quadratic term sets in at 10.
      { from: 10, to: 100, terms: [term("1", 50), { ...term("n^2", 0.5), shift: 10 }] },
    ],
  } as unknown as Fit;
  assert.deepEqual([0.5, 5, 9.5, 10, 20, 110].map((n) => costAt(fit, n)), [50, 50, 50, 50, 100, 5050]);
  assert.equal(costAt({ ...fit, pieces: [] }, 3), 7);
  assert.equal(costAt({ ...fit, pieces: [], terms: [{ ...term("2^n", 1), rate: 0.5 }] }, 6), 8);
  assert.equal(costAt({ ...fit, pieces: [], terms: [term("1", -5)] }, 3), 0);
  assert.ok(Math.abs(bandFactor({ ...fit, spread: 0.1 }) - 1.2054) < 1e-3);
  assert.ok(Number.isNaN(costAt({ ...fit, growth: null }, 3)));
});

test("forecasts are read straight on log-log axes", () => {
  const factors = [1, 10, 100, 1000];
  assert.deepEqual(place(factors, 1), { i: 0, t: 0 });
  assert.deepEqual(place(factors, 1000), { i: 2, t: 1 });
  assert.deepEqual(place(factors, 5000), { i: 2, t: 1 });
  const half = place(factors, Math.sqrt(10));
  assert.equal(half.i, 0);
  assert.ok(Math.abs(half.t - 0.5) < 1e-12);
  assert.ok(Math.abs(read([0.01, 0.04, 1, 1], half) - 0.02) < 1e-12);
  assert.equal(read([0, 1, 1, 1], half), 0.5);
  assert.equal(read([0.1, 0.2, 0.3, 0.4], place(factors, 10)), 0.2);
});

test("who overtakes whom, and where", () => {
  const r = run(
    [
      { name: "up", share: 0.1, forecast: [0.1, 0.4, 0.8, 0.9], class: "n^2" },
      { name: "down", share: 0.4, forecast: [0.4, 0.2, 0.02, 0.01] },
      { name: "mid", share: 0.2, forecast: [0.2, 0.3, 0.04, 0.03] },
      { name: "unknown", class: null },
    ],
    0,
    { overtakes: [[0, 2, 2, 1.5, 3], [0, 1, 3, 2, 4], [2, 1, 5, 4, null]] },
  );
  const told = (factor: number): string[] => overtakes(r, factor).map((o) => `${o.routine.name} ${o.passes.name} ${o.at} ${o.latest}`);
  assert.deepEqual(told(1), []);
  assert.deepEqual(told(2.5), ["up mid 2 3"]);
  assert.deepEqual(told(10), ["up down 3 4", "mid down 5 null"]);
  assert.deepEqual([...positions(r, place([1, 10, 100, 1000], 1))], [3, 1, 2, 0]);
  assert.deepEqual([...positions(r, place([1, 10, 100, 1000], 10))], [1, 3, 2, 0]);
});

test("the headline names the routine to look at", () => {
  const quadratic = run([
    { name: "str_tolower", class: "n^2", share: 0.31, forecast: [0.31, 0.84, 0.98, 1] },
    { name: "rehash", class: "n^K", power: 1.4, verdict: 1, forecast: [0.1, 0.1, 0.1, 0.1] },
    { name: "main", class: null },
  ]);
  const said = headline(quadratic, 10);
  assert.equal(text(said.lead), "2 routines grow faster than n log n; [str_tolower] is n² and will be 84 % of the run at 10× the input (31 % now).");
  assert.equal(text(said.more), "1 of them is tentative. The growth of 1 routine is not known. ");
  assert.match(text(headline(quadratic, 1).lead), /is n² and is 31 % of the run\.$/);
  assert.match(text(headline(run([{ name: "f", class: "n" }]), 10).lead), /^No routine grows faster than n log n; .*\[f\], is n\.$/);
  assert.equal(text(headline(run([{ name: "f", class: null }]), 10).lead), "No growth can be named yet.");
  assert.equal(text(headline(run([]), 10).lead), "No routine was recorded.");
});

test("two runs are matched and compared", () => {
  const a = run([{ name: "f", class: "n^2", cost: 100 }, { name: "g" }, { name: "twin", id: "t" }, { name: "twin", id: "t" }]);
  const b = run([{ name: "g" }, { name: "f", class: "n", cost: 10 }, { name: "twin", id: "t" }, { name: "new" }], 1);
  const rows = match(a, b);
  assert.deepEqual(rows.map((r) => [r.id, !!r.a, !!r.b]), [["f", true, true], ["g", true, true], ["t", true, true], ["t-2", true, false], ["new", false, true]]);
  assert.deepEqual(rows.map(classChanged), [true, false, false, false, false]);
  assert.equal(costRatio(rows[0]!), 0.1);
  assert.match(text(comparison(rows, a, b).lead), /^1 routine changed class; \[f\] went from n² to n and costs 0\.1× what it did\.$/);
  assert.match(text(comparison(rows, a, b).more), /1 routine only in A\. 1 routine only in B\./);
  assert.match(text(comparison([], a, b).lead), /^No routine changed/);
  const rms = run([{ name: "f", points: 2 }], 0, { metric: "rms", input_volume: 25 });
  const trms = run([{ name: "f", points: 9 }], 1, { input_volume: 100 });
  assert.match(text(comparison(match(rms, trms), rms, trms).lead), /^75 % of the input .* 1 routine has more input sizes under trms\.$/);
});

test("search, filters and order", () => {
  const r = run([
    { name: "Parse::Expr", class: "n^2", share: 0.2, object: "/lib/front.so", forecast: [0.2, 0.3, 0.4, 0.5] },
    { name: "parse_all", class: "n", share: 0.9, verdict: 1, forecast: [0.9, 0.8, 0.7, 0.6] },
    { name: "emit", class: null, share: 0.5 },
  ]);
  const rows = match(r, null);
  const none = new Set<string>();
  const names = (change: Partial<typeof DEFAULTS>, starred = none): string[] => {
    const state = { ...DEFAULTS, ...change };
    return sort(filter(rows, state, starred), state, context(r, state, starred)).map((x) => x.main.name);
  };
  assert.deepEqual(names({}), ["Parse::Expr", "parse_all", "emit"]);
  assert.deepEqual(names({ query: "PARSE" }), ["Parse::Expr", "parse_all"]);
  assert.deepEqual(names({ query: "expr front" }), ["Parse::Expr"]);
  assert.deepEqual(names({ query: "expr back" }), []);
  assert.deepEqual(names({ class: "unknown" }), ["emit"]);
  assert.deepEqual(names({ class: "n^2" }), ["Parse::Expr"]);
  assert.deepEqual(names({ verdict: "tentative" }), ["parse_all"]);
  assert.deepEqual(names({ library: "front.so" }), ["Parse::Expr"]);
  assert.deepEqual(names({ starredOnly: true }, new Set(["emit"])), ["emit"]);
  assert.deepEqual(names({ sort: "share", descending: true }), ["parse_all", "emit", "Parse::Expr"]);
  assert.deepEqual(names({ sort: "name" }), ["emit", "Parse::Expr", "parse_all"]);
  // Unknown comes last, whichever way.
  assert.deepEqual(names({ sort: "then", descending: true, factor: 1000 }), ["parse_all", "Parse::Expr", "emit"]);
  assert.deepEqual(names({ sort: "then", descending: false, factor: 1000 }), ["Parse::Expr", "parse_all", "emit"]);
  assert.deepEqual(names({ sort: "nonsense" }), ["Parse::Expr", "parse_all", "emit"]);
});

test("the address says what is shown, and nothing else", () => {
  assert.equal(toHash(DEFAULTS, DEFAULTS), "");
  const state = { ...DEFAULTS, selected: "abc", query: "a&b=c #", factor: 42, logX: true, b: 2, descending: true };
  assert.deepEqual(fromHash("#" + toHash(state, DEFAULTS), DEFAULTS), state);
  assert.deepEqual(fromHash("#x=zero&view=%00&logx=maybe&cost=free", DEFAULTS), DEFAULTS);
  assert.equal(fromHash("#x=1e9", DEFAULTS).factor, 1000);
  assert.equal(fromHash("#r=00ff", DEFAULTS).selected, "00ff");
});

test("the guess ratio says where it goes", () => {
  const n = Array.from({ length: 30 }, (_, i) => 10 + 10 * i);
  const over = (f: (n: number) => number) => n.map(f);
  assert.equal(trend(n, over((v) => v)), "rises");
  assert.equal(trend(n, over((v) => 1 / v)), "falls");
  assert.equal(trend(n, over((v) => 3 + 5 / v)), "level");
  assert.equal(trend([1, 2], [1, 2]), "unclear");
  assert.equal(trend(n, n.map(() => null)), "unclear");
  assert.equal(guessed("", 0, null).class.key, "n");
  assert.equal(guessed("", 0, { class: classOf("n^2"), power: 0 }).class.key, "n^2");
  assert.deepEqual(guessed("n^K", 1.7, null).power, 1.7);
  assert.equal(guessed("bogus", 0, null).class.key, "n");
});

test("axes", () => {
  assert.deepEqual(logSplits(0.9, 1200), [1, 3, 10, 30, 100, 300, 1000]);
  assert.deepEqual(logSplits(1, 2e4), [1, 10, 100, 1000, 10000]);
  assert.deepEqual(logSplits(9, 100), [10, 20, 50, 100]);
  assert.deepEqual(logSplits(10, 20), [10, 12, 14, 16, 18, 20]);
  assert.deepEqual(logSplits(5, 5), []);
  assert.ok(logSplits(1e-3, 1e30).length < 12);
  assert.deepEqual(rangeX(0, 100, 0, 100, false), [0, 102]);
  assert.deepEqual(rangeX(20, 30, 0, 100, false), [20, 30]);
  assert.deepEqual(rangeY(5, 100, { logY: false }), [0, 106]);
  assert.deepEqual(rangeY(0, 0, { logY: false }), [0, 1]);
  const [low, high] = rangeY(0, 100, { logY: true });
  assert.ok(low > 0 && high > 100);
});
