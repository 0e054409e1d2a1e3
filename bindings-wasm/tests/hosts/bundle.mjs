// Bundles the suite for each kind of host, as an application that depends on the package would be bundled.

import { build } from "esbuild";
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";

const at = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));

export const BUILT = at("built");
const DIST = at("../../dist");

/** The package is found as an installed one is: by its name, through its export conditions. */
function install() {
  rmSync(at("node_modules/messina-cql"), { force: true });
  symlinkSync(at("../.."), at("node_modules/messina-cql"), "dir");
}

/**
 * @param {string} entry
 * @param {import("esbuild").BuildOptions} options
 */
const bundle = (entry, options) =>
  build({
    entryPoints: [at(`entries/${entry}.ts`)],
    bundle: true,
    format: "esm",
    target: "es2022",
    logLevel: "warning",
    sourcemap: "inline",
    outfile: at(`built/${entry}.js`),
    ...options,
  });

/** In a build for the edge, the module is a global: the VM has no imports. @type {import("esbuild").Plugin} */
const moduleIsGlobal = {
  name: "module is global",
  setup(held) {
    held.onResolve({ filter: /\.wasm(\?module)?$/ }, ({ path }) => ({ path, namespace: "wasm" }));
    held.onLoad({ filter: /./, namespace: "wasm" }, () => ({ contents: "export default globalThis.compiledModule" }));
  },
};

/** In a Worker, the module lies beside the code, as Wrangler would put it. @type {import("esbuild").Plugin} */
const moduleIsBeside = {
  name: "module is beside",
  setup(held) {
    held.onResolve({ filter: /\.wasm$/ }, () => ({ path: "./messina.wasm", external: true }));
  },
};

/** Makes `built/`. */
export async function bundleAll() {
  install();
  mkdirSync(BUILT, { recursive: true });
  await Promise.all([
    // The host itself finds the package and picks the condition.
    bundle("process", { external: ["messina-cql", "node:*"] }),
    bundle("worker", { conditions: ["workerd", "worker"], external: ["cloudflare:*", "node:*"], plugins: [moduleIsBeside] }),
    bundle("edge", { conditions: ["edge-light"], format: "iife", plugins: [moduleIsGlobal] }),
    bundle("page", { conditions: ["browser"] }),
    bundle("dedicated", { conditions: ["worker", "browser"] }),
  ]);
  return { worker: `${BUILT}/worker.js`, module: `${DIST}/messina.wasm`, edge: `${BUILT}/edge.js`, dist: DIST };
}
