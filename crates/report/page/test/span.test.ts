// The table of call sites: its columns and its order.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SpanData } from "../src/data.ts";
import { COLUMNS, sites, sorted } from "../src/span/rows.ts";

function run(): SpanData {
  const nine = (n: number): number[] => [1, 40 * n, 10 * n, 1, 40 * n, 10 * n, 7, 30 * n, 3 * n];
  return {
    sites: {
      file: ["a.c", "a.c"],
      line: [9, 10],
      function: ["fib", "fib"],
      callee: ["fib", "fib"],
      kind: ["spawn", "call"],
      share: [0.2, 0.8],
      on_work: [nine(2), nine(1)],
      on_span: [nine(1), nine(2)],
      what_if: [
        [1, 2, 3],
        [4, 5, 6],
      ],
      advice: [null, "parallelize"],
    },
  } as unknown as SpanData;
}

test("all of Cilkprof's columns are there, each with its definition", () => {
  const labels = COLUMNS.map((c) => c.label);
  for (const which of ["", "top ", "local "]) {
    for (const value of ["work", "span", "parallelism", "count"]) {
      for (const on of ["on work", "on span"]) assert.ok(labels.includes(`${which}${value} ${on}`), `${which}${value} ${on}`);
    }
  }
  assert.equal(new Set(COLUMNS.map((c) => c.key)).size, COLUMNS.length);
  assert.ok(COLUMNS.every((c) => c.title.length > 10));
});

test("sites sort by any column and by place", () => {
  const all = sites(run());
  const lines = (key: string, descending: boolean): number[] => sorted(all, key, descending).map((s) => s.line);
  assert.deepEqual(lines("share", true), [10, 9]);
  assert.deepEqual(lines("share", false), [9, 10]);
  assert.deepEqual(lines("00w", true), [9, 10]);
  assert.deepEqual(lines("12s", true), [10, 9]);
  assert.deepEqual(lines("place", true), [10, 9]);
  // Equal values: by place.
  assert.deepEqual(lines("calls", true), [9, 10]);
  const parallelism = COLUMNS.find((c) => c.label === "parallelism on work")!;
  assert.equal(parallelism.value(all[0]!), 4);
});
