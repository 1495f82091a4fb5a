// Starts the page: reads the data, puts up the frame, and hands over to the mode.

import { summary as readSummary, Unreadable, type Summary } from "./data.ts";
import { code, h, replace } from "./dom.ts";
import { basename, visible } from "./format.ts";
import { MODES, type Mode, type View } from "./modes.ts";
import * as theme from "./theme.ts";

const KEYS: readonly [string, string][] = [
  ["/", "search"],
  ["↑ ↓ or j k", "move through the table"],
  ["Enter", "go to the routine, Esc back"],
  ["s", "star the routine"],
  ["x  y", "log or linear axis"],
  ["1  2", "routines, whole program"],
  ["d", "dark or light"],
  ["Esc", "back to the table"],
  ["?", "this help"],
];

async function start(): Promise<void> {
  theme.start();
  const app = document.getElementById("app")!;
  const data = await readSummary();
  const modes = MODES.filter((m) => m.present(data));
  const main = h("main");
  const views = h("div", { class: "viewbar" });
  const help = helpDialog();
  let view: View | null = null;
  // A mode is mounted once: its data are unpacked then, and what the user chose in it stays.
  const mounted = new Map<Mode, Promise<View>>();
  const show = async (mode: Mode): Promise<void> => {
    const made = mounted.get(mode) ?? mode.mount(data);
    mounted.set(mode, made);
    view = await made;
    replace(main, view.element);
    replace(views, view.tabs);
    for (const tab of app.querySelectorAll<HTMLElement>(".modes button")) {
      if (tab.dataset["mode"] === mode.id) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
  };
  replace(
    app,
    h(
      "header",
      { class: "top" },
      h("span", { class: "brand" }, "Farsight"),
      h("span", { class: "what" }, code(programs(data))),
      modes.length > 1
        ? h("nav", { class: "modes", "aria-label": "Modes" }, modes.map((m) => h("button", { type: "button", "data-mode": m.id, onclick: () => void show(m) }, m.title)))
        : h("span", { class: "mode" }, modes[0]?.title ?? ""),
      views,
      h("span", { class: "spring" }),
      h("button", { type: "button", class: "icon", title: "Dark or light (d)", "aria-label": "Dark or light", onclick: theme.toggle }, "◐"),
      h("button", { type: "button", class: "icon", title: "Keys and terms (?)", "aria-label": "Help", onclick: () => help.showModal() }, "?"),
    ),
    main,
    help,
  );
  const first = modes[0];
  if (first) await show(first);
  else replace(main, h("p", { class: "empty" }, "This report holds no runs."));
  performance.mark("farsight-shown");
  document.addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) && (target as HTMLInputElement).type !== "range";
    if (typing || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.key === "?") help.showModal();
    else if (event.key === "d") theme.toggle();
    else view?.key(event);
  });
}

function programs(data: Summary): string {
  const names = new Set(Object.values(data.modes).flatMap((mode) => mode.runs.map((r) => basename(r.program))));
  return visible([...names].join(", "), 80);
}

function helpDialog(): HTMLDialogElement {
  const term = (name: string, text: string) => [h("dt", null, name), h("dd", null, text)];
  const dialog: HTMLDialogElement = h(
    "dialog",
    { class: "help", "aria-label": "Help", onclick: (e: Event) => e.target === dialog && dialog.close() },
    h("h2", null, "Keys"),
    h("dl", { class: "keys" }, KEYS.map(([k, what]) => [h("dt", null, h("kbd", null, k)), h("dd", null, what)])),
    h("h2", null, "Terms"),
    h(
      "dl",
      null,
      term("Input size n", "The distinct memory cells that a call reads before it writes them: what it got to work on, measured and not guessed."),
      term("Confident", "The class is the only one that explains the data."),
      term("Tentative (?)", "The best class, but others are nearly as good or the evidence is thin."),
      term("Unknown", "No class can be named; it is not forecast either."),
      term("Share", "A routine's cost, with its callees, over that of the run. Shares overlap, as callers contain callees."),
      term("Forecast", "The cost functions at a multiple of the sizes that were seen, with a 95 % interval."),
    ),
    h("p", { class: "about" }, "This page is one file and works offline. Plots are drawn with uPlot, © Leon Sorokin, MIT licence."),
    h("button", { type: "button", onclick: () => dialog.close() }, "Close"),
  );
  return dialog;
}

start().catch((error: unknown) => {
  const text = error instanceof Unreadable ? error.message : `The report cannot be shown: ${String(error)}`;
  const app = document.getElementById("app")!;
  replace(app, h("p", { class: "boot failed", role: "alert" }, text));
  if (!(error instanceof Unreadable)) console.error(error);
});
