// The function table of counts: its order.

import assert from "node:assert/strict";
import { test } from "node:test";
import { rows, sorted } from "../src/count/rows.ts";
import type { CountData } from "../src/data.ts";

const run = {
  functions: {
    name: ["main", "f", "g"], object: ["/bin/x", "/bin/x", "/lib/y"], file: ["", "", ""], line: [0, 0, 0],
    calls: [1, 7, 7], own: [5, 50, 50], all: [105, 50, 50],
  },
} as unknown as CountData;

test("rows sort by number and by name, ties by name", () => {
  const all = rows(run);
  const names = (key: Parameters<typeof sorted>[1], descending: boolean) => sorted(all, key, descending).map((r) => r.name);
  assert.deepEqual(names("own", true), ["f", "g", "main"]);
  assert.deepEqual(names("all", true), ["main", "f", "g"]);
  assert.deepEqual(names("name", false), ["f", "g", "main"]);
  assert.deepEqual(names("object", true), ["g", "f", "main"]);
});
