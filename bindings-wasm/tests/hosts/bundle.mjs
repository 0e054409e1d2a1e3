// Bundles the suite for each kind of host, as an application that depends on the package would be bundled.

import { build } from "esbuild";
import { mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

const at = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));

/** The modules of the package by the names of their files. */
export const modules = () =>
  readdirSync(at("../../dist")).filter((name) => name.endsWith(".wasm"))
    .map((name) => ({ name, bytes: readFileSync(at(`../../dist/${name}`)) }));

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

/** In a build for the edge, modules are globals: the VM has no imports. @type {import("esbuild").Plugin} */
const moduleIsGlobal = {
  name: "module is global",
  setup(held) {
    held.onResolve({ filter: /\.wasm(\?module)?$/ }, ({ path }) => ({ path, namespace: "wasm" }));
    held.onLoad({ filter: /./, namespace: "wasm" }, ({ path }) => ({
      contents: `export default globalThis.compiledModules[${JSON.stringify(basename(path, "?module"))}]`,
    }));
  },
};

/** In a Worker, the module lies beside the code, as Wrangler would put it. @type {import("esbuild").Plugin} */
const moduleIsBeside = {
  name: "module is beside",
  setup(held) {
    held.onResolve({ filter: /\.wasm$/ }, ({ path }) => ({ path: `./${basename(path)}`, external: true }));
  },
};

/** Makes `built/`. */
export async function bundleAll() {
  install();
  mkdirSync(at("built"), { recursive: true });
  await Promise.all([
    // The host itself finds the package and picks the condition.
    bundle("process", { external: ["messina-cql", "messina-cql/*", "ws", "node:*"] }),
    bundle("worker", { conditions: ["workerd", "worker"], external: ["cloudflare:*", "node:*"], plugins: [moduleIsBeside] }),
    bundle("edge", { conditions: ["edge-light"], format: "iife", plugins: [moduleIsGlobal] }),
    bundle("page", { conditions: ["browser"] }),
    bundle("dedicated", { conditions: ["worker", "browser"] }),
  ]);
}
