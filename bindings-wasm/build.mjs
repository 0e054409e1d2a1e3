// Makes dist/: the JavaScript for each host, its types, and the modules that cargo built.
//
// `node build.mjs MODULE.wasm [LITE.wasm]`; without a module only the JavaScript is made again.
//
// dist/HOST/ENTRY.js   one folder for each host of js/hosts; what its entries share is in chunks
// dist/wasm.js         the module as text
// dist/timeuuid.js     UUIDs that hold a time
// dist/types/          what tsc says of the sources
// dist/internals.js    for the tests of the parts; not published
// LICENSE-*            copies of the repository's
//
// wasm-opt gets no feature flags: it reads the right set from the module, which cargo must
// therefore not strip. Debian's wasm-opt breaks modules; npm's is used. Control flow is taken apart
// and put together again between two rounds, which saves one per cent. Nothing lies below address
// 1024 but the far end of the stack, so sums of a pointer and a small offset do not wrap. Last, functions that are
// alike are put together (order.mjs), which takes 2 % off the module after gzip.

import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { named } from "./order.mjs";

/** The hosts, each with its file in js/hosts. */
const HOSTS = ["browser", "bun", "deno", "edge", "node", "workerd"];

const at = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const run = (/** @type {string} */ tool, /** @type {string[]} */ ...rest) =>
  execFileSync(at(`node_modules/.bin/${tool}`), rest, { stdio: "inherit" });

mkdirSync(at("dist"), { recursive: true });
for (const [place, name] of [[2, "messina.wasm"], [3, "messina-lite.wasm"]]) {
  const module = process.argv[/** @type {number} */ (place)];
  if (!module) continue;
  const opened = at(`dist/${name}.part`);
  run("wasm-opt", "--low-memory-unused", "-Oz", "--flatten", "--rereloop", "-Oz", "-Oz", "--reorder-functions",
    "--strip-debug", "--strip-producers", module, "-o", opened);
  writeFileSync(opened, named(readFileSync(opened)));
  run("wasm-opt", "--optimize-level=2", "--shrink-level=2", "--reorder-functions-by-name", "--strip-debug",
    "--strip-target-features", opened, "-o", at(`dist/${name}`));
  rmSync(opened);
}
// Where only the full module was built, it serves both.
const lite = existsSync(at("dist/messina-lite.wasm")) ? "messina-lite.wasm" : "messina.wasm";

/** What the host of one folder is, and where the module lies from there. */
const options = (/** @type {string} */ host, /** @type {string} */ wasm) => ({
  bundle: true,
  format: /** @type {const} */ ("esm"),
  target: "es2022",
  platform: /** @type {const} */ (host === "node" ? "node" : "neutral"),
  alias: { "#host": at(`js/hosts/${host}.ts`), "#wasm": wasm },
  define: { WASM_FILE: JSON.stringify(wasm), IS_WHOLE: `${!wasm.endsWith("-lite.wasm")}` },
  // What a platform has itself.
  external: ["*.wasm", "node:*", "cloudflare:*", "bun", "bun:*"],
  logLevel: /** @type {const} */ ("warning"),
});

for (const host of HOSTS) {
  rmSync(at(`dist/${host}`), { recursive: true, force: true });
  const entries = ["index", "compat", ...(host === "workerd" ? ["durable"] : [])];
  await build({
    ...options(host, "../messina.wasm"),
    entryPoints: entries.map((entry) => at(`js/${entry}.ts`)),
    outdir: at(`dist/${host}`),
    splitting: true,
    minify: true,
  });
  await build({
    ...options(host, `../${lite}`),
    entryPoints: [at("js/index.ts")],
    outfile: at(`dist/${host}/lite.js`),
    minify: true,
  });
}

const base64 = existsSync(at("dist/messina.wasm")) ? readFileSync(at("dist/messina.wasm")).toString("base64") : "";
await build({
  ...options("browser", "./messina.wasm"),
  entryPoints: [at("js/wasm.ts")],
  outfile: at("dist/wasm.js"),
  minify: true,
  plugins: [{
    name: "base64",
    setup(/** @type {import("esbuild").PluginBuild} */ build) {
      build.onResolve({ filter: /^#base64$/ }, () => ({ path: "base64", namespace: "base64" }));
      build.onLoad({ filter: /.*/, namespace: "base64" }, () => ({ contents: `export const WASM_BASE64 = "${base64}";` }));
    },
  }],
});
await build({
  ...options("browser", "./messina.wasm"),
  entryPoints: [at("js/timeuuid.ts")],
  outfile: at("dist/timeuuid.js"),
  minify: true,
});
await build({
  ...options("node", "./messina.wasm"),
  entryPoints: [at("js/internals.ts")],
  outfile: at("dist/internals.js"),
  sourcemap: "inline",
});
for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) copyFileSync(at(`../${name}`), at(name));
rmSync(at("dist/types"), { recursive: true, force: true });
run("tsc", "-p", at("."));
