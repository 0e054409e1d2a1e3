// Makes dist/ from the module that cargo built: `node build.mjs MODULE.wasm`.
//
// wasm-opt gets no feature flags: it reads the right set from the module, which cargo must
// therefore not strip. Debian's wasm-opt breaks modules; npm's is used. Control flow is taken apart
// and put together again between two rounds, which saves one per cent. Nothing lies below address
// 1024 but the far end of the stack, so sums of a pointer and a small offset do not wrap.

import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const at = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const module = process.argv[2];
if (!module) throw new Error("usage: node build.mjs MODULE.wasm");

mkdirSync(at("dist"), { recursive: true });
const run = (/** @type {string} */ tool, /** @type {string[]} */ ...rest) =>
  execFileSync(at(`node_modules/.bin/${tool}`), rest, { stdio: "inherit" });
run("wasm-opt", "--low-memory-unused", "-Oz", "--flatten", "--rereloop", "-Oz", "-Oz", "--reorder-functions", "--strip-debug", "--strip-producers", "--strip-target-features", module, "-o", at("dist/messina.wasm"));
run("esbuild", at("js/index.js"), "--bundle", "--minify", "--format=esm", "--platform=node", "--target=node20",
  "--log-level=warning", `--outfile=${at("dist/index.js")}`);
