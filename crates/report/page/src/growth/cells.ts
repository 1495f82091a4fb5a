// The cells of the routine table.

import { growthLabel, pace, PACE_GLYPH, PACE_WORDS, type Growth } from "../classes.ts";
import { code, h, type Child } from "../dom.ts";
import { basename, exact, percent, points, si, times, visible } from "../format.ts";
import { read, shareAt } from "./forecast.ts";
import type { Fit, Routine } from "./model.ts";
import { costRatio, shareDelta, type Context, type Row } from "./rows.ts";

/** A class as a badge: shape and colour say the pace, a dashed edge that it is tentative. */
export function badge(growth: Growth | null, fit: Fit | null): HTMLElement {
  const p = pace(growth);
  const verdict = fit?.verdict ?? "confident";
  const words = `${PACE_WORDS[p]}${verdict === "tentative" ? ", tentative" : ""}`;
  return h(
    "span",
    { class: `badge ${p} ${verdict}`, title: words },
    h("span", { class: "glyph", "aria-hidden": "true" }, PACE_GLYPH[p]),
    h("span", null, growth ? growthLabel(growth) : "unknown"),
    verdict === "tentative" ? h("span", { class: "unsure", title: "tentative" }, "?") : null,
  );
}

export function exponentText(fit: Fit): string {
  if (!Number.isFinite(fit.exponent)) return "–";
  const half = (fit.exponentHigh - fit.exponentLow) / 2;
  const shown = fit.exponent.toFixed(2);
  return Number.isFinite(half) ? `${shown} ± ${half.toFixed(2)}` : shown;
}

export function place(routine: Routine): string {
  const where = routine.file ? `${basename(routine.file)}${routine.line ? `:${routine.line}` : ""}` : "";
  return [routine.library, where].filter(Boolean).map((s) => visible(s, 60)).join(" · ");
}

function bar(share: number, low = NaN, high = NaN): HTMLElement {
  const clamp = (v: number): string => `${Math.max(0, Math.min(1, v)) * 100}%`;
  return h(
    "span",
    { class: "bar", "aria-hidden": "true" },
    h("span", { class: "fill", vars: { width: clamp(share) } }),
    Number.isFinite(low) && high > low
      ? h("span", { class: "range", vars: { left: clamp(low), width: clamp(high - low) } })
      : null,
  );
}

function shareCell(share: number): Child[] {
  return [h("span", { class: "num" }, percent(share)), bar(share)];
}

function thenCell(routine: Routine, context: Context): Child[] {
  const then = shareAt(routine, context.at);
  if (!Number.isFinite(then)) return [h("span", { class: "none", title: "Growth unknown: not forecast" }, "not forecast")];
  const low = read(routine.forecast!.low, context.at);
  const high = read(routine.forecast!.high, context.at);
  const span = h("span", { class: "num", title: `95 % interval ${percent(low)} to ${percent(high)}` }, percent(then));
  return [span, bar(then, low, high)];
}

/** How a routine's place among all by share changes; empty without change. */
export function move(before: number, after: number): Child {
  if (before === 0 || after === 0 || before === after) return null;
  const up = after < before;
  const by = Math.abs(after - before);
  return h(
    "span",
    { class: up ? "move up" : "move down", title: `${up ? "Up" : "Down"} ${by} by share` },
    `${up ? "▲" : "▼"}${by > 99 ? "99+" : by}`,
  );
}

export function cell(key: string, row: Row, context: Context): Child {
  const r = row.main;
  switch (key) {
    case "name":
      return [
        h(
          "span",
          { class: "line" },
          context.starred.has(row.id) ? h("span", { class: "star", title: "Starred" }, "★ ") : null,
          code(visible(r.name, 200)),
        ),
        h(
          "span",
          { class: "place" },
          !row.a ? h("span", { class: "only" }, "only in B") : null,
          code(place(r)),
        ),
      ];
    case "class":
      return badge(r.fit.growth, r.fit);
    case "classB":
      return row.b ? badge(row.b.fit.growth, row.b.fit) : h("span", { class: "none" }, "not in B");
    case "share":
      return shareCell(r.share);
    case "shareDelta":
      return signed(points(shareDelta(row)), shareDelta(row));
    case "costRatio":
      return signed(times(costRatio(row)), costRatio(row) - 1);
    case "then":
      return thenCell(r, context);
    case "self":
      return amount(r.costSelf);
    case "cost":
      return amount(r.cost);
    case "calls":
      return amount(r.calls);
    case "points":
      return exact(r.pointCount);
    case "largest":
      return amount(r.nMax);
    case "exponent":
      return exponentText(r.fit);
    case "verdict":
      return r.fit.verdict;
    case "library":
      return code(visible(r.library, 60));
    default:
      return null;
  }
}

function amount(value: number): HTMLElement {
  return h("span", { title: exact(value) }, si(value));
}

/** Worse is marked by more than its colour: the sign is in the text, and growth is bold. */
function signed(text: string, direction: number): HTMLElement {
  const tone = !Number.isFinite(direction) ? "none" : direction > 0.02 ? "worse" : direction < -0.02 ? "better" : "same";
  return h("span", { class: tone }, text);
}
