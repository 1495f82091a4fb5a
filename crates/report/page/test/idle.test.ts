// Trees of idle runs: who answers for idleness, and the path of the most.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { IdleData, IdleTree } from "../src/data.ts";
import { answerable, effort, hotPath, topDown } from "../src/idle/tree.ts";

/** Names in order of context: parent, class, kind, idleness of its own. */
function made(contexts: [string, number, number, number, number][]): [IdleData, IdleTree] {
  const strings = [...new Set(contexts.map((c) => c[0]))];
  const tree = {
    parent: contexts.map((c) => c[1]),
    name: contexts.map((c) => strings.indexOf(c[0])),
    file: contexts.map(() => -1),
    line: contexts.map(() => 0),
    kind: contexts.map((c) => c[3]),
    class: contexts.map((c) => c[2]),
    own: contexts.map((c) => [1, 0, 0, c[4], 0]),
  } as unknown as IdleTree;
  return [{ strings } as unknown as IdleData, tree];
}

const NEUTRAL = 4;
const LOOP = 2;

test("idleness during a library's functions and loops is their caller's", () => {
  const [run, tree] = made([
    ["main", -1, 0, 0, 1],
    ["set_up", 0, 0, 0, 1],
    ["loop", 1, NEUTRAL, LOOP, 2],
    ["cos", 2, NEUTRAL, 0, 7],
    ["factor", 0, 0, 0, 8],
    ["cos", 4, NEUTRAL, 0, 1],
  ]);
  assert.deepEqual(answerable(run, tree), ["set_up", 10]);
});

test("nobody answers where nothing was idle", () => {
  const [run, tree] = made([["main", -1, 0, 0, 0]]);
  assert.equal(answerable(run, tree), null);
});

test("the hot path follows the child that has half", () => {
  const [run, tree] = made([
    ["main", -1, 0, 0, 0],
    ["a", 0, 0, 0, 6],
    ["b", 0, 0, 0, 4],
    ["c", 1, 0, 0, 1],
    ["d", 1, 0, 0, 1],
  ]);
  const roots = topDown(run, tree);
  assert.deepEqual(hotPath(roots, (v) => v[3]).map((i) => i.name), ["main", "a"]);
  assert.equal(effort(roots[0]!.all), 17);
});
