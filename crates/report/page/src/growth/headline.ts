// The answer, before any table: what the run says about larger inputs, in a sentence or two.
// A sentence is a list of parts, because names must never be mixed into markup or text that is parsed.

import { growthLabel, pace } from "../classes.ts";
import { count, percent, times } from "../format.ts";
import { place, shareAt } from "./forecast.ts";
import type { Routine, Run } from "./model.ts";
import { classChanged, costRatio, type Row } from "./rows.ts";

export type Part = string | { readonly routine: Routine } | { readonly strong: string };

export interface Headline {
  readonly lead: readonly Part[];
  readonly more: readonly Part[];
}

const name = (routine: Routine): Part => ({ routine });
const strong = (text: string): Part => ({ strong: text });

export function headline(run: Run, factor: number): Headline {
  const all = run.routines;
  if (all.length === 0) {
    return {
      lead: ["No routine was recorded."],
      more: ["The program may have ended before its first call, or none of its code could be instrumented."],
    };
  }
  const known = all.filter((r) => r.fit.growth !== null);
  if (known.length === 0) {
    return {
      lead: ["No growth can be named yet."],
      more: [
        `None of ${count(all.length, "routine")} was called on enough different input sizes. `,
        "Run the program on inputs of several sizes and merge the profiles.",
      ],
    };
  }
  const fast = known.filter((r) => pace(r.fit.growth) === "fast");
  const more: Part[] = [];
  const unsure = fast.filter((r) => r.fit.verdict === "tentative").length;
  const unknown = all.length - known.length;
  if (unsure > 0) more.push(`${unsure === fast.length ? (unsure === 1 ? "It is" : "All are") : `${unsure} of them ${unsure === 1 ? "is" : "are"}`} tentative. `);
  if (unknown > 0) more.push(`The growth of ${count(unknown, "routine")} is not known. `);
  if (fast.length === 0) {
    const top = [...known].sort((x, y) => y.share - x.share)[0]!;
    return {
      lead: [
        "No routine grows faster than n log n; the largest with a known growth, ", name(top), ", is ",
        strong(growthLabel(top.fit.growth)), ".",
      ],
      more,
    };
  }
  const first = fast[0]!;
  const then = shareAt(first, place(run.data.factors, factor));
  const lead: Part[] = [
    strong(count(fast.length, "routine")), ` ${fast.length === 1 ? "grows" : "grow"} faster than n log n`,
  ];
  lead.push("; ", name(first), " is ", strong(growthLabel(first.fit.growth)));
  if (Number.isFinite(then) && factor > 1) {
    const now = first.forecast!.share[0]!;
    const verb = then > now * 1.02 ? "and will be" : then < now * 0.98 ? "and falls to" : "and stays at";
    lead.push(` ${verb} `, strong(percent(then)), ` of the run at ${times(factor)} the input (${percent(first.share)} now).`);
  } else {
    lead.push(` and is `, strong(percent(first.share)), " of the run.");
  }
  return { lead, more };
}

/** The same program under both metrics: what only the threaded one sees. */
function metrics(rows: readonly Row[], a: Run, b: Run): Headline {
  const [rms, trms] = a.data.metric === "rms" ? [a, b] : [b, a];
  const richer = rows.filter((r) => r.a && r.b && (a === rms ? r.b.pointCount > r.a.pointCount : r.a.pointCount > r.b.pointCount)).length;
  const unseen = trms.data.input_volume > 0 ? Math.max(0, 1 - rms.data.input_volume / trms.data.input_volume) : 0;
  return {
    lead: [strong(percent(unseen)), " of the input comes from other threads or the kernel, and only trms sees it; ", strong(count(richer, "routine")), ` ${richer === 1 ? "has" : "have"} more input sizes under trms.`],
    more: [`Run A counts input as ${a.data.metric}, run B as ${b.data.metric}. `],
  };
}

/** The same for two runs: what changed. */
export function comparison(rows: readonly Row[], a: Run, b: Run): Headline {
  if (a.data.metric !== b.data.metric) return metrics(rows, a, b);
  const changed = rows.filter(classChanged);
  const total = a.data.cost_total > 0 ? b.data.cost_total / a.data.cost_total : NaN;
  const more: Part[] = [];
  if (Number.isFinite(total)) more.push(`The run costs ${times(total)} what it did. `);
  const onlyA = rows.filter((r) => !r.b).length;
  const onlyB = rows.filter((r) => !r.a).length;
  if (onlyA) more.push(`${count(onlyA, "routine")} only in A. `);
  if (onlyB) more.push(`${count(onlyB, "routine")} only in B. `);
  if (changed.length === 0) return { lead: ["No routine changed its growth class between the two runs."], more };
  const first = [...changed].sort((x, y) => Math.abs(1 - costRatio(y)) * share(y) - Math.abs(1 - costRatio(x)) * share(x))[0]!;
  return {
    lead: [
      strong(count(changed.length, "routine")), " changed class; ", name(first.main), " went from ",
      strong(growthLabel(first.a!.fit.growth)), " to ", strong(growthLabel(first.b!.fit.growth)),
      " and costs ", strong(times(costRatio(first))), " what it did.",
    ],
    more,
  };
}

function share(row: Row): number {
  return Math.max(row.a?.share ?? 0, row.b?.share ?? 0);
}
