// Makes dist/ from the module that cargo built: `node build.mjs MODULE.wasm`.
//
// wasm-opt gets no feature flags: it reads the right set from the module, which cargo must
// therefore not strip. Debian's wasm-opt breaks modules; npm's is used.

import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const at = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const module = process.argv[2];
if (!module) throw new Error("usage: node build.mjs MODULE.wasm");

mkdirSync(at("dist"), { recursive: true });
const run = (/** @type {string} */ tool, /** @type {string[]} */ ...rest) =>
  execFileSync(at(`node_modules/.bin/${tool}`), rest, { stdio: "inherit" });
run("wasm-opt", "-Oz", "--strip-debug", "--strip-producers", "--strip-target-features", module, "-o", at("dist/messina.wasm"));
run("esbuild", at("js/index.js"), "--bundle", "--minify", "--format=esm", "--platform=node", "--target=node20",
  "--log-level=warning", `--outfile=${at("dist/index.js")}`);
