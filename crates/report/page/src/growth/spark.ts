// The thumbnail of a cost plot: mean costs as dots, the fitted curve as a line, on linear axes from zero.

import { pace } from "../classes.ts";
import { color } from "../theme.ts";
import { costAt, type Routine, type Run } from "./model.ts";

export const WIDTH = 84;
export const HEIGHT = 28;

/** Dots that fit side by side. */
const DOTS_MAX = 42;

/** What a thumbnail draws, few enough to keep for every routine. */
interface Thumb {
  n: number[];
  mean: number[];
}

const thumbs = new WeakMap<Routine, Thumb>();

function thumb(run: Run, routine: Routine): Thumb {
  let t = thumbs.get(routine);
  if (!t) {
    const { n, mean } = run.meansOf(routine);
    const step = Math.max(1, n.length / DOTS_MAX);
    t = { n: [], mean: [] };
    for (let i = 0; i < n.length; i += step) {
      t.n.push(n[Math.floor(i)]!);
      t.mean.push(mean[Math.floor(i)]!);
    }
    if (n.length > 0) {
      t.n.push(n[n.length - 1]!);
      t.mean.push(mean[n.length - 1]!);
    }
    if (run.hasPoints) thumbs.set(routine, t);
  }
  return t;
}

export function draw(canvas: HTMLCanvasElement, run: Run, routine: Routine): void {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = WIDTH * ratio;
  canvas.height = HEIGHT * ratio;
  const ctx = canvas.getContext("2d");
  if (!ctx) return;
  ctx.scale(ratio, ratio);
  const { n, mean } = thumb(run, routine);
  const top = Math.max(...mean, 1e-9) * 1.05;
  const right = Math.max(routine.nMax, 1);
  const x = (v: number): number => 2 + (v / right) * (WIDTH - 4);
  const y = (v: number): number => HEIGHT - 2.5 - (Math.min(v, top) / top) * (HEIGHT - 5);
  ctx.strokeStyle = color("--grid");
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(0, HEIGHT - 0.5);
  ctx.lineTo(WIDTH, HEIGHT - 0.5);
  ctx.stroke();
  ctx.fillStyle = color("--average");
  for (let i = 0; i < n.length; i++) {
    ctx.beginPath();
    ctx.arc(x(n[i]!), y(mean[i]!), 1.4, 0, 2 * Math.PI);
    ctx.fill();
  }
  if (routine.fit.growth) {
    ctx.strokeStyle = color(pace(routine.fit.growth) === "fast" ? "--fast" : "--fit");
    ctx.lineWidth = 1.4;
    if (routine.fit.verdict === "tentative") ctx.setLineDash([3, 2]);
    ctx.beginPath();
    for (let px = x(routine.nMin); px <= WIDTH - 2; px += 2) {
      const cost = costAt(routine.fit, ((px - 2) / (WIDTH - 4)) * right);
      if (Number.isFinite(cost)) ctx.lineTo(px, y(Math.max(cost, 0)));
    }
    ctx.stroke();
  }
}
