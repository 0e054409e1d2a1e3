// Makes dist/: the JavaScript for each host, its types, and the module that cargo built.
//
// `node build.mjs MODULE.wasm`; without a module only the JavaScript is made again.
//
// dist/HOST/ENTRY.js   one folder for each host of js/hosts; what its entries share is in chunks
// dist/types/          what tsc says of the sources
// dist/internals.js    for the tests of the parts; not published
//
// wasm-opt gets no feature flags: it reads the right set from the module, which cargo must
// therefore not strip. Debian's wasm-opt breaks modules; npm's is used. Control flow is taken apart
// and put together again between two rounds, which saves one per cent. Nothing lies below address
// 1024 but the far end of the stack, so sums of a pointer and a small offset do not wrap. Last, functions that are
// alike are put together (order.mjs), which takes 2 % off the module after gzip.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { named } from "./order.mjs";

/** The hosts, each with its file in js/hosts. */
const HOSTS = ["browser", "bun", "deno", "edge", "node", "workerd"];

/** Entries that every host has. */
const ENTRIES = ["index"];

const at = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const run = (/** @type {string} */ tool, /** @type {string[]} */ ...rest) =>
  execFileSync(at(`node_modules/.bin/${tool}`), rest, { stdio: "inherit" });

mkdirSync(at("dist"), { recursive: true });
const module = process.argv[2];
if (module) {
  const opened = at("dist/messina.part.wasm");
  run("wasm-opt", "--low-memory-unused", "-Oz", "--flatten", "--rereloop", "-Oz", "-Oz", "--reorder-functions",
    "--strip-debug", "--strip-producers", module, "-o", opened);
  writeFileSync(opened, named(readFileSync(opened)));
  run("wasm-opt", "--optimize-level=2", "--shrink-level=2", "--reorder-functions-by-name", "--strip-debug",
    "--strip-target-features", opened, "-o", at("dist/messina.wasm"));
  rmSync(opened);
}

/** What the host of one folder is, and where the module lies from there. */
const options = (/** @type {string} */ host, /** @type {string} */ wasm) => ({
  bundle: true,
  format: /** @type {const} */ ("esm"),
  target: "es2022",
  platform: /** @type {const} */ (host === "node" ? "node" : "neutral"),
  alias: { "#host": at(`js/hosts/${host}.ts`), "#wasm": wasm },
  define: { WASM_FILE: JSON.stringify(wasm) },
  // What a platform has itself.
  external: ["*.wasm", "node:*", "cloudflare:*", "bun", "bun:*"],
  logLevel: /** @type {const} */ ("warning"),
});

for (const host of HOSTS) {
  rmSync(at(`dist/${host}`), { recursive: true, force: true });
  await build({
    ...options(host, "../messina.wasm"),
    entryPoints: ENTRIES.map((entry) => at(`js/${entry}.ts`)),
    outdir: at(`dist/${host}`),
    splitting: true,
    minify: true,
  });
}
await build({
  ...options("node", "./messina.wasm"),
  entryPoints: [at("js/internals.ts")],
  outfile: at("dist/internals.js"),
  sourcemap: "inline",
});
rmSync(at("dist/types"), { recursive: true, force: true });
run("tsc", "-p", at("."));
