// Builds the page: `node build.mjs` writes dist/, `node build.mjs --check` says whether dist/ is what the sources
// give, `node build.mjs --tests` bundles the tests into .build/unit/ and .build/browser/.
// The versions are pinned and nothing depends on time or place, so that the same sources give the same bytes.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const common = {
  absWorkingDir: here,
  bundle: true,
  write: false,
  charset: "utf8",
  logLevel: "warning",
  legalComments: "none",
};

async function bundle() {
  const license = readFileSync(join(here, "node_modules/uplot/LICENSE"), "utf8").trim();
  const banner = `/*! Holds uPlot, under this licence:\n${license}\n*/`;
  const target = ["chrome100", "firefox113", "safari16.4"];
  const js = await build({
    ...common,
    entryPoints: ["src/main.ts"],
    format: "iife",
    minify: true,
    target,
    banner: { js: banner },
  });
  const css = await build({ ...common, entryPoints: ["src/style/page.css"], minify: true, target, banner: { css: banner } });
  const script = js.outputFiles[0].text;
  const style = css.outputFiles[0].text;
  const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return { "page.js": script, "page.css": style, "policy.txt": policy + "\n" };
}

async function tests() {
  for (const [from, to] of [["test", "unit"], ["browser", "browser"]]) {
    const outdir = `.build/${to}`;
    rmSync(join(here, outdir), { recursive: true, force: true });
    const files = readdirSync(join(here, from)).filter((f) => f.endsWith(".test.ts"));
    await build({
      ...common,
      entryPoints: files.map((f) => `${from}/${f}`),
      outdir,
      outExtension: { ".js": ".mjs" },
      format: "esm",
      platform: "node",
      packages: "external",
      write: true,
      sourcemap: "inline",
    });
  }
}

if (process.argv.includes("--tests")) {
  await tests();
} else if (process.argv.includes("--check")) {
  for (const [name, text] of Object.entries(await bundle())) {
    let old = "";
    try {
      old = readFileSync(join(here, "dist", name), "utf8");
    } catch {
      // Absent: differs.
    }
    if (old !== text) {
      console.error(`dist/${name} is not what src/ gives: run \`cargo xtask page build\` and commit it`);
      process.exitCode = 1;
    }
  }
} else {
  mkdirSync(join(here, "dist"), { recursive: true });
  for (const [name, text] of Object.entries(await bundle())) {
    writeFileSync(join(here, "dist", name), text);
    console.log(`dist/${name}  ${(text.length / 1024).toFixed(1)} KiB`);
  }
}
