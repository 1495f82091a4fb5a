// Trees of calling contexts: top-down as they are, bottom-up from the functions outwards, flat.

import type { Five, IdleData, IdleTree } from "../data.ts";

export interface Item {
  readonly name: string;
  readonly kind: number;
  readonly class: number;
  readonly place: string;
  readonly own: Five;
  readonly all: Five;
  readonly children: Item[];
}

export const zero = (): Five => [0, 0, 0, 0, 0];

export function add(to: Five, from: Five): void {
  for (let i = 0; i < 5; i++) to[i]! += from[i]!;
}

/** Work, overhead and idleness. */
export const effort = (v: Five): number => v[0] + v[1] + v[2] + v[3];

function item(run: IdleData, tree: IdleTree, i: number): Item {
  const file = run.strings[tree.file[i]!] ?? "";
  const place = file ? `${file}${tree.line[i] ? `:${tree.line[i]}` : ""}` : "";
  return {
    name: run.strings[tree.name[i]!] ?? "?",
    kind: tree.kind[i]!,
    class: tree.class[i]!,
    place,
    own: [...tree.own[i]!] as Five,
    all: [...tree.own[i]!] as Five,
    children: [],
  };
}

export function topDown(run: IdleData, tree: IdleTree): Item[] {
  const items = tree.parent.map((_, i) => item(run, tree, i));
  const roots: Item[] = [];
  for (let i = items.length - 1; i >= 0; i--) {
    const parent = tree.parent[i]!;
    if (parent >= 0) {
      add(items[parent]!.all, items[i]!.all);
      items[parent]!.children.push(items[i]!);
    } else roots.push(items[i]!);
  }
  return roots;
}

/** Names from each context outwards, and which contexts are outermost of their function. */
function outwards(tree: IdleTree, i: number): number[] {
  const path = [i];
  for (let p = tree.parent[i]!; p >= 0; p = tree.parent[p]!) path.push(p);
  return path;
}

/** Functions with their callers below them; values are those of the function itself. */
export function bottomUp(run: IdleData, tree: IdleTree): Item[] {
  const roots = new Map<number, Item>();
  for (let i = 0; i < tree.parent.length; i++) {
    const own = tree.own[i]!;
    if (effort(own) + own[4] === 0) continue;
    const path = outwards(tree, i).filter((p) => tree.kind[p] !== 2);
    let level: Item[] | null = null;
    for (const at of path) {
      const name = run.strings[tree.name[at]!] ?? "?";
      let found: Item | undefined = level ? level.find((c) => c.name === name) : roots.get(tree.name[at]!);
      if (!found) {
        found = { ...item(run, tree, at), own: zero(), all: zero(), children: [] };
        if (level) level.push(found);
        else roots.set(tree.name[at]!, found);
      }
      add(found.own, own);
      add(found.all, own);
      level = found.children;
    }
  }
  return [...roots.values()];
}

/** One item per function: exclusive, and inclusive with recursion counted once. Loops belong to their function. */
export function flat(run: IdleData, tree: IdleTree): Item[] {
  const functions = new Map<number, Item>();
  const of: number[] = [];
  const all = tree.own.map((v) => [...v] as Five);
  for (let i = tree.parent.length - 1; i >= 0; i--) {
    const parent = tree.parent[i]!;
    if (parent >= 0) add(all[parent]!, all[i]!);
  }
  for (let i = 0; i < tree.parent.length; i++) {
    const parent = tree.parent[i]!;
    of.push(tree.kind[i] === 2 && parent >= 0 ? of[parent]! : tree.name[i]!);
    const key = of[i]!;
    let found = functions.get(key);
    if (!found) {
      found = { ...item(run, tree, i), own: zero(), all: zero(), children: [] };
      functions.set(key, found);
    }
    add(found.own, tree.own[i]!);
    if (!outwards(tree, i).slice(1).some((p) => of[p] === key)) add(found.all, all[i]!);
  }
  return [...functions.values()];
}

/** Kind of a loop, and class of the program's own code. */
const LOOP = 2;
const WORK = 0;

/**
 * The function of the program during which most cores were idle, and for how long. What libraries do counts as their
 * caller's: nobody can make `cos` parallel.
 */
export function answerable(run: IdleData, tree: IdleTree): [string, number] | null {
  const sums = new Map<number, number>();
  const of: number[] = [];
  for (let i = 0; i < tree.parent.length; i++) {
    const parent = tree.parent[i]!;
    const own = parent < 0 || (tree.class[i] === WORK && tree.kind[i] !== LOOP);
    of.push(own ? tree.name[i]! : of[parent]!);
    sums.set(of[i]!, (sums.get(of[i]!) ?? 0) + tree.own[i]![3]);
  }
  let best: [number, number] | null = null;
  for (const s of sums) if (!best || s[1] > best[1]) best = s;
  return best && best[1] > 0 ? [run.strings[best[0]] ?? "?", best[1]] : null;
}

/** The contexts to open: from the top down while one child has at least half of its parent's value. */
export function hotPath(roots: readonly Item[], value: (v: Five) => number): Item[] {
  const path: Item[] = [];
  let level: readonly Item[] = roots;
  let least = level.reduce((sum, r) => sum + value(r.all), 0) / 2;
  for (;;) {
    const best = level.reduce<Item | null>((b, c) => (!b || value(c.all) > value(b.all) ? c : b), null);
    if (!best || value(best.all) <= 0 || value(best.all) < least) return path;
    path.push(best);
    least = value(best.all) / 2;
    level = best.children;
  }
}
