// The page in a real browser: what it says, how it answers, and that hostile names stay names.
// PAGE_FIXTURES is the folder that the `page-fixtures` example wrote, CHROMIUM the browser's path.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { chromium, type Browser, type BrowserContextOptions, type Locator, type Page } from "playwright-core";

const fixtures = process.env["PAGE_FIXTURES"];
const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

let browser: Browser;
/** What the page at hand did that no page may: errors, refused loads, dialogs, requests. */
let wrongs: string[] = [];

before(async () => {
  assert.ok(fixtures, "PAGE_FIXTURES names the folder of pages");
  browser = await chromium.launch({
    executablePath,
    args: [
      "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync",
    ],
  });
});

after(async () => browser?.close());

beforeEach(() => {
  wrongs = [];
});

afterEach(async () => {
  for (const context of browser.contexts()) await context.close();
  assert.deepEqual(wrongs, []);
});

async function open(name: string, hash = "", options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  page.on("pageerror", (e) => wrongs.push(`error: ${e.message}`));
  page.on("console", (m) => m.type() === "error" && wrongs.push(`console: ${m.text()}`));
  page.on("dialog", (d) => {
    wrongs.push(`dialog: ${d.message()}`);
    void d.dismiss();
  });
  const url = `file://${fixtures}/${name}.html`;
  page.on("request", (r) => !r.url().startsWith(url) && wrongs.push(`request: ${r.url()}`));
  await page.goto(url + (hash && "#" + hash));
  if (name !== "none") await page.waitForSelector("html[data-ready]");
  return page;
}

/** Charts are drawn when they have been seen. */
const drawn = (page: Page): Promise<unknown> => page.waitForSelector(".card.main canvas");

const plain = (s: string | null): string => (s ?? "").replace(/[\u00a0\u202f]/g, " ").trim();
const said = async (l: Locator): Promise<string> => plain(await l.textContent());
/** The names of the rows in view, in order. */
async function names(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>(".body .row")]
      .sort((a, b) => Number(a.getAttribute("aria-rowindex")) - Number(b.getAttribute("aria-rowindex")))
      .map((r) => r.querySelector(".cell.name .line .name")!.textContent!),
  );
}
const selectedName = (page: Page): Promise<string> => said(page.locator(".detail h2"));

test("the answer comes first, then what is known of the run", async () => {
  const page = await open("wf");
  assert.match(await said(page.locator("h1")), /^3 routines grow faster than n log n; str_tolower is n² and will be \d+ % of the run at 10× the input \(31 % now\)\.$/);
  const facts = await said(page.locator(".facts"));
  for (const part of ["/usr/bin/wf -c 'anna karenina.txt'", "exit 0", "3.21 s", "1.90 G blocks", "trms, 4-byte cells", "1 problem"]) {
    assert.ok(facts.includes(part), part);
  }
  await page.click(".problems summary");
  assert.match(await said(page.locator(".problems li")), /system calls of unknown effect/);
  assert.equal(await page.title(), "wf · Farsight");
});

test("a routine is shown in words, numbers and plots", async () => {
  const page = await open("wf");
  assert.equal(await selectedName(page), "str_tolower");
  assert.match(await said(page.locator(".judgement")), /n².*cost ≈ .*Twice the input costs four times as much\. Confident \(98 %\)\./);
  const titles = await page.locator(".detail .card h3").allTextContents();
  assert.deepEqual(titles, ["Forecast", "Guess ratio", "Total cost", "Workload", "Variance", "Input"]);
  await drawn(page);
  const legend = await page.locator(".card.main .legend button").allTextContents();
  assert.deepEqual(legend, ["worst", "best", "average", "fit n²"]);
  assert.match(await said(page.locator(".facts-table")), /Exponent2\.00 ± 0\.0\d, 95 % interval 1\.9\d to 2\.0\dThreads1: 1/);
  assert.match(await said(page.locator("[aria-label='Input'] .composition")), /100 % plain first reads/);
  // The line of the routine, in its neighbourhood.
  assert.match(await said(page.locator(".src.here")), /▶8void str_tolower\(char \*str\) \{/);
  assert.ok((await page.locator(".src").count()) > 20);
});

test("plots have ink", async () => {
  const page = await open("wf");
  const inked = (selector: string): Promise<number> =>
    page.locator(selector).first().evaluate((c) => {
      const canvas = c as HTMLCanvasElement;
      const data = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height).data;
      let n = 0;
      for (let i = 3; i < data.length; i += 4) if (data[i]) n++;
      return n;
    });
  await drawn(page);
  assert.ok((await inked(".card.main canvas")) > 5000);
  assert.ok((await inked(".spark")) > 50);
  for (const title of ["Forecast", "Guess ratio", "Total cost", "Workload", "Variance"]) {
    await page.locator(`.cards [aria-label='${title}']`).scrollIntoViewIfNeeded();
    await page.waitForSelector(`.cards [aria-label='${title}'] canvas`);
    assert.ok((await inked(`.cards [aria-label='${title}'] canvas`)) > 500, title);
  }
});

test("unknown growth, tentative growth, regimes, recursion, induced input and threads are said", async () => {
  const page = await open("wf");
  const go = (name: string): Promise<void> => page.locator(".body .row", { has: page.getByText(name, { exact: true }) }).click();
  await go("main");
  assert.match(await said(page.locator(".judgement")), /unknownNo class can be named: only 1 distinct input size/);
  assert.match(await said(page.locator("[aria-label='Forecast'].card")), /Not forecast/);
  await go("rehash");
  assert.match(await said(page.locator(".judgement")), /n\^1\.34.*Tentative \(71 %\): n log n is nearly as good/);
  await page.fill("input[type=search]", "grow_buffer");
  await page.keyboard.press("Enter");
  assert.equal(await selectedName(page), "grow_buffer");
  assert.match(await said(page.locator(".regimes")), /RegimesFrom nTo nGrowthCost264/);
  await page.fill("input[type=search]", "tree_insert");
  await page.keyboard.press("Enter");
  await page.locator("[aria-label='Total cost'].card").scrollIntoViewIfNeeded();
  await page.waitForSelector("[aria-label='Total cost'].card canvas");
  assert.deepEqual(await page.locator("[aria-label='Total cost'].card .legend button").allTextContents(), ["all calls", "outermost calls"]);
  await page.fill("input[type=search]", "worker");
  await page.keyboard.press("Enter");
  assert.match(await said(page.locator("[aria-label='Input'].card .composition")), /35 % plain first reads55 % written by other threads10 % written by the kernel/);
  assert.match(await said(page.locator(".facts-table")), /Threads4: 1, 2, 3, 4/);
});

test("search narrows, and says so when nothing is left", async () => {
  const page = await open("wf");
  await page.keyboard.press("/");
  await page.keyboard.type("lower");
  assert.deepEqual(await names(page), ["str_tolower", "wf_tolower"]);
  assert.equal(await said(page.locator(".counter")), "2 of 24 routines");
  await page.keyboard.press("Escape");
  assert.equal(await said(page.locator(".counter")), "24 routines");
  await page.fill("input[type=search]", "libc malloc");
  assert.deepEqual((await names(page)).sort(), ["_int_malloc", "malloc"]);
  await page.fill("input[type=search]", "no such thing");
  assert.match(await said(page.locator(".table .empty")), /No routine passes/);
});

test("every column sorts, both ways", async () => {
  const page = await open("wf");
  const keys = await page.locator(".head [data-sort]").evaluateAll((b) => b.map((x) => (x as HTMLElement).dataset["sort"]!));
  assert.deepEqual(keys, ["rank", "name", "class", "share", "then", "self", "cost", "calls", "points", "largest", "exponent", "verdict", "library"]);
  for (const key of keys.slice(1)) {
    const head = page.locator(`.head .cell:has([data-sort=${key}])`);
    await page.click(`[data-sort=${key}]`);
    const first = await head.getAttribute("aria-sort");
    const down = await names(page);
    await page.click(`[data-sort=${key}]`);
    assert.notEqual(await head.getAttribute("aria-sort"), first, key);
    assert.notDeepEqual(await names(page), down, key);
  }
  await page.click("[data-sort=calls]");
  assert.deepEqual((await names(page)).slice(0, 3), ["strlen", "wf_tolower", "compare_entries"]);
  await page.click("[data-sort=rank]");
  assert.equal((await names(page))[0], "str_tolower");
});

test("filters by class, verdict and library combine, and clear", async () => {
  const page = await open("wf");
  await page.selectOption("select[aria-label='Growth class']", "n");
  assert.equal(await said(page.locator(".counter")), "10 of 24 routines");
  await page.selectOption("select[aria-label='Library']", "libc.so.6");
  const both = await names(page);
  assert.ok(both.includes("strlen") && !both.includes("addword") && !both.includes("malloc"));
  await page.selectOption("select[aria-label='Verdict']", "tentative");
  assert.deepEqual(await names(page), []);
  await page.click("text=Clear");
  assert.equal(await said(page.locator(".counter")), "24 routines");
});

test("the keyboard reaches everything", async () => {
  const page = await open("wf");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const order = await names(page);
  assert.equal(await selectedName(page), order[1]);
  await page.keyboard.press("j");
  assert.equal(await selectedName(page), order[2]);
  await page.keyboard.press("k");
  await page.keyboard.press("End");
  assert.equal(await selectedName(page), (await names(page)).at(-1));
  await page.keyboard.press("Home");
  assert.equal(await selectedName(page), order[0]);
  const active = await page.locator(".scroller").getAttribute("aria-activedescendant");
  assert.equal(await page.locator(`#${active}`).getAttribute("aria-selected"), "true");
  await page.keyboard.press("Enter");
  assert.ok(await page.locator(".detail").evaluate((d) => d === document.activeElement));
  await page.keyboard.press("Escape");
  assert.ok(await page.locator(".scroller").evaluate((d) => d === document.activeElement));
  const outline = await page.locator(".scroller").evaluate((d) => getComputedStyle(d).outlineStyle);
  assert.equal(outline, "solid");
  await page.keyboard.press("x");
  await page.keyboard.press("y");
  assert.equal(await page.locator("[aria-label='x axis'] [data-value=log]").getAttribute("aria-pressed"), "true");
  assert.equal(await page.locator("[aria-label='y axis'] [data-value=log]").getAttribute("aria-pressed"), "true");
  await page.keyboard.press("s");
  assert.equal(await page.locator(".starbutton").getAttribute("aria-pressed"), "true");
  assert.equal(await page.locator(".row .star").count(), 1);
  await page.keyboard.press("2");
  assert.ok(await page.locator(".program").isVisible());
  await page.keyboard.press("?");
  assert.ok(await page.locator("dialog.help").isVisible());
  await page.keyboard.press("Escape");
  await page.keyboard.press("1");
  assert.ok(await page.locator(".detail").isVisible());
});

test("the slider ranks anew, and says who overtakes whom", async () => {
  const page = await open("wf");
  const slider = page.locator("input[type=range]");
  await slider.fill("0");
  assert.equal(await said(page.locator(".factor")), "1×");
  assert.match(await said(page.locator(".news")), /as measured/);
  assert.deepEqual((await names(page)).slice(0, 2), ["addword", "str_tolower"]);
  await slider.fill("200");
  assert.equal(await said(page.locator(".factor")), "100×");
  assert.equal((await names(page))[0], "str_tolower");
  assert.match(await said(page.locator(".news")), /str_tolower overtakes addword at 2(\.\d)?×, \d+ % then/);
  assert.match(await said(page.locator("h1")), /at 100× the input/);
  assert.equal(await said(page.locator(".head .cell.then")), "At 100×↓");
  // The plots follow with the next frame.
  await page.locator("[aria-label='Forecast'].card .note", { hasText: /^At 100×: \d+\s% of the run/ }).waitFor();
  await page.click(".presets button >> nth=3");
  assert.equal(await said(page.locator(".factor")), "1000×");
  // What is not known is not forecast, and comes last.
  await page.fill("input[type=search]", "malloc");
  assert.equal((await names(page)).at(-1), "malloc");
});

test("axes, series, self cost and the guess can be chosen", async () => {
  const page = await open("wf");
  const picture = async (): Promise<string> => page.locator(".card.main canvas").evaluate((c) => (c as HTMLCanvasElement).toDataURL());
  await drawn(page);
  const seen = new Set([await picture()]);
  const differs = async (what: string): Promise<void> => {
    const now = await picture();
    assert.ok(!seen.has(now), what);
    seen.add(now);
  };
  await page.click("[aria-label='x axis'] [data-value=log]");
  await differs("log x");
  await page.click("[aria-label='y axis'] [data-value=log]");
  await differs("log y");
  await page.click("[aria-label='Cost'] [data-value=self]");
  await differs("self");
  await page.click(".card.main .legend button >> nth=0");
  await differs("without worst");
  const card = page.locator("[aria-label='Guess ratio'].card");
  await card.scrollIntoViewIfNeeded();
  assert.match(await said(card.locator(".note")), /levels off: n² bounds/);
  await page.selectOption("select[aria-label='g(n)']", "n");
  assert.match(await said(card.locator(".note")), /rises: the cost grows faster than n\./);
  await page.selectOption("select[aria-label='g(n)']", "n^3");
  assert.match(await said(card.locator(".note")), /falls: the cost grows slower than n³/);
  await page.selectOption("select[aria-label='g(n)']", "n^K");
  await page.fill("input[aria-label='Exponent of g(n)']", "1.2");
  assert.match(await said(card.locator(".note")), /faster than n\^1\.20/);
});

test("a drag zooms all plots, a double click resets them", async () => {
  const page = await open("wf");
  const over = page.locator(".card.main .u-over");
  const picture = async (): Promise<string> => page.locator(".card.main canvas").evaluate((c) => (c as HTMLCanvasElement).toDataURL());
  await drawn(page);
  const whole = await picture();
  const box = (await over.boundingBox())!;
  await page.mouse.move(box.x + 60, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + 260, box.y + 110, { steps: 4 });
  await page.mouse.up();
  assert.notEqual(await picture(), whole);
  await over.dblclick({ position: { x: 100, y: 100 } });
  await page.mouse.move(0, 0);
  assert.equal(await picture(), whole);
});

test("links lead to the routine, and the address follows", async () => {
  const page = await open("wf");
  await page.locator(".body .row", { has: page.getByText("hash", { exact: true }) }).click();
  await page.waitForFunction(() => location.hash.includes("r="));
  const link = await page.evaluate(() => location.hash.slice(1));
  const other = await open("wf", `${link}&x=50&logx=1&view=routines`);
  assert.equal(await selectedName(other), "hash");
  assert.equal(await said(other.locator(".factor")), "50×");
  await other.evaluate(() => (location.hash = "#view=program"));
  await other.waitForSelector(".program .card");
  const astray = await open("wf", "r=nothing&x=bogus");
  assert.match(await said(astray.locator(".detail .empty")), /Select a routine/);
});

test("the whole program is charted, with richness and volume when both metrics are there", async () => {
  const page = await open("wf", "view=program");
  const titles = (p: Page): Promise<string[]> => p.locator(".program .card h3").allTextContents();
  const one = ["Who dominates as the input grows", "Growth classes", "Routines with at least k input sizes", "Induced input"];
  assert.deepEqual(await titles(page), one);
  assert.match(await said(page.locator(".classes")), /n²1/);
  await page.click(".classes button >> text=n log n");
  assert.deepEqual((await names(page)).sort(), ["qsort_r", "sort_entries"]);
  const both = await open("metrics", "view=program");
  assert.deepEqual(await titles(both), [...one, "Profile richness", "Input volume"]);
  assert.match(await said(both.locator("h1")), /% of the input comes from other threads or the kernel, and only trms sees it; 2 routines have more input sizes under trms\./);
});

test("two runs are laid side by side", async () => {
  const page = await open("compare");
  assert.match(await said(page.locator("h1")), /^1 routine changed class; str_tolower went from n² to n and costs 0\.0\d+× what it did\.$/);
  assert.match(await said(page.locator(".more")), /1 routine only in B/);
  const keys = await page.locator(".head [data-sort]").evaluateAll((b) => b.map((x) => (x as HTMLElement).dataset["sort"]!));
  assert.deepEqual(keys.slice(2, 6), ["class", "classB", "costRatio", "shareDelta"]);
  await drawn(page);
  assert.deepEqual(await page.locator(".card.main .legend button[aria-pressed=true]").allTextContents(), ["average A", "average B", "fit A n²", "fit B n"]);
  assert.equal(await page.locator(".judgement").count(), 2);
  await page.check("text=class changed");
  assert.deepEqual(await names(page), ["str_tolower"]);
  await page.uncheck("text=class changed");
  await page.click("[data-sort=shareDelta]");
  await page.click("[data-sort=shareDelta]");
  assert.equal((await names(page))[0], "str_tolower");
  await page.fill("input[type=search]", "chunk");
  await page.keyboard.press("Enter");
  assert.match(await said(page.locator(".detail-head")), /only in run B/);
  await page.fill("input[type=search]", "");
  await page.selectOption("select[aria-label='Run B']", "-1");
  assert.match(await said(page.locator("h1")), /^3 routines grow faster/);
  assert.equal(await page.locator(".head [data-sort=classB]").count(), 0);
});

test("names are shown and never obeyed", async () => {
  const page = await open("hostile");
  const shown = await names(page);
  for (const name of ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "(no name)", "two⏎lines⇥and a tab", "__proto__"]) {
    assert.ok(shown.includes(name), name);
  }
  assert.ok(shown.some((n) => n.startsWith("\\u{202e}gnp.exe")), "the override is spelled out");
  // Every routine in detail, both views, and the problems: nothing of it becomes markup.
  await page.click(".problems summary");
  for (let i = 0; i < shown.length; i++) {
    await page.locator(".body .row").nth(i).click();
    assert.notEqual(await selectedName(page), "");
  }
  await page.keyboard.press("2");
  await page.waitForSelector(".program canvas");
  assert.equal(await page.locator("img, iframe, object, embed, svg[onload], b").count(), 0);
  assert.equal(await page.locator("script:not([type])").count(), 1);
  assert.equal(await page.title(), 'b>"& · Farsight');
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 1440, `nothing is wider than the window: ${wide}`);
});

test("what the analysis itself concludes is shown", async () => {
  const page = await open("real");
  assert.match(await said(page.locator("h1")), /routines? grows? faster than n log n; str_tolower is n² and will be \d+ % of the run at 10× the input/);
  assert.match(await said(page.locator(".judgement")), /n²cost ≈ [\d.]+ \+ [\d.]+·n²Twice the input costs four times as much\. Confident/);
  assert.match(await said(page.locator(".news")), /str_tolower overtakes addword at \d/);
  for (const name of ["real-hostile"]) await open(name);
});

test("nothing to say is said", async () => {
  assert.equal(await said((await open("unknown")).locator("h1")), "No growth can be named yet.");
  assert.equal(await said((await open("empty")).locator("h1")), "No routine was recorded.");
  const none = await open("none");
  await none.waitForSelector("main .empty");
  assert.equal(await said(none.locator("main")), "This report holds no runs.");
});

test("a browser that is too old is told so", async () => {
  const context = await browser.newContext();
  await context.addInitScript(() => {
    delete (window as { DecompressionStream?: unknown }).DecompressionStream;
  });
  const page = await context.newPage();
  await page.goto(`file://${fixtures}/wf.html`);
  await page.waitForSelector("[role=alert]");
  assert.match(await said(page.locator("[role=alert]")), /This browser is too old .* Chromium 80/);
});

test("dark follows the system, and the button turns it", async () => {
  const page = await open("wf", "", { colorScheme: "dark" });
  const ground = (): Promise<string> => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const dark = await ground();
  assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
  await page.click("[aria-label='Dark or light']");
  assert.notEqual(await ground(), dark);
  await page.keyboard.press("d");
  assert.equal(await ground(), dark);
});

test("text stands out from its ground, light and dark", async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await open("compare", "", { colorScheme });
    const weak = await page.evaluate(() => {
      const parse = (c: string): number[] => (c.match(/[\d.]+/g) ?? []).map(Number);
      const luminance = ([r, g, b]: number[]): number => {
        const f = (v: number): number => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
        return 0.2126 * f(r!) + 0.7152 * f(g!) + 0.0722 * f(b!);
      };
      const ground = (e: Element | null): number[] => {
        for (let x = e; x; x = x.parentElement) {
          const c = parse(getComputedStyle(x).backgroundColor);
          if (c.length === 3 || (c[3] ?? 0) > 0.99) return c;
        }
        return [255, 255, 255];
      };
      const out: string[] = [];
      for (const e of document.querySelectorAll("body *")) {
        const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent!.trim());
        if (!own || !(e as HTMLElement).offsetParent || e.closest("option, script")) continue;
        const [p, q] = [luminance(parse(getComputedStyle(e).color)), luminance(ground(e))];
        const contrast = (Math.max(p, q) + 0.05) / (Math.min(p, q) + 0.05);
        if (contrast < 4.5) out.push(`${e.className} "${e.textContent!.slice(0, 20)}" ${contrast.toFixed(2)}`);
      }
      return [...new Set(out)];
    });
    assert.deepEqual(weak, [], colorScheme);
  }
});

test("nothing breaks on smaller screens", async () => {
  for (const [width, height] of [[1024, 768], [820, 1180], [390, 844]] as const) {
    for (const name of ["wf", "compare", "hostile"]) {
      const page = await open(name, "", { viewport: { width, height } });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${name} at ${width}: ${wide}`);
      await page.locator(".body .row").nth(1).click();
      assert.ok(await page.locator(".detail h2").isVisible());
      await page.context().close();
    }
  }
  const phone = await open("wf", "", { viewport: { width: 390, height: 844 } });
  await phone.locator(".body .row").nth(2).click();
  await phone.waitForFunction(() => document.querySelector(".detail")!.getBoundingClientRect().top < 200);
  await phone.click("text=← Table");
  await phone.waitForFunction(() => document.querySelector(".table")!.getBoundingClientRect().top < 200);
});

test("5,000 routines with 500,000 points scroll, sort and open", async () => {
  const page = await open("large");
  assert.equal(await said(page.locator(".counter")), "5 000 routines");
  assert.ok((await page.locator(".body .row").count()) < 60, "only rows in view exist");
  await page.locator(".scroller").evaluate((s) => (s.scrollTop = 2500 * 46));
  await page.waitForFunction(() => [...document.querySelectorAll(".body .row")].some((r) => r.getAttribute("aria-rowindex") === "2505"));
  await page.click("[data-sort=points]");
  await page.locator(".scroller").evaluate((s) => (s.scrollTop = 0));
  await page.locator(".body .row[aria-rowindex='2']").click();
  const points = Number((await said(page.locator(".body .row[aria-rowindex='2'] .cell.points"))).replace(/ /g, ""));
  assert.ok(points > 20_000, String(points));
  await page.waitForSelector(".card.main canvas");
  await page.fill("input[type=search]", "hash");
  assert.match(await said(page.locator(".counter")), /^\d+ of 5 000 routines$/);
});

test("counts: totals, functions in order, search, threads", async () => {
  const page = await open("counts");
  assert.match(await said(page.locator("h1")), /^1 103 908 instructions in 2 threads; function_42 executed 91 % of them itself\.$/);
  const facts = await said(page.locator(".facts"));
  for (const part of ["killed by SIGKILL", "Loads", "367 969", "Threads2"]) assert.ok(facts.includes(part), `${part} in ${facts}`);
  const first = async (): Promise<string> => said(page.locator(".functions tbody tr td").first());
  assert.equal(await first(), "function_42");
  await page.click(".functions th button:has-text('Calls')");
  assert.equal(await first(), "function_99");
  await page.keyboard.press("/");
  await page.keyboard.type("function_1");
  assert.equal(await page.locator(".functions tbody tr").count(), 10);
  await page.click("details summary:has-text('By thread')");
  assert.equal(await page.locator("details .facts-table tbody tr").count(), 2);
});

test("a page of two modes has a tab for each", async () => {
  const page = await open("both");
  assert.deepEqual(await page.locator(".modes button").allTextContents(), ["Growth", "Counts"]);
  await page.click(".modes button:has-text('Counts')");
  await page.waitForSelector(".counts h1");
  assert.match(await said(page.locator("h1")), /instructions/);
  await page.click(".modes button:has-text('Growth')");
  await page.waitForSelector(".growth h1");
  assert.match(await said(page.locator("h1")), /faster than n log n/);
});
