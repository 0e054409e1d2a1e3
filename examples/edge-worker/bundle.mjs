// The Worker as one module, and the driver's WebAssembly beside it. Builds the package if it is not there.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ROOT } from "./servers.mjs";

const at = (path, base = import.meta.url) => fileURLToPath(new URL(path, base));

/** Makes sure of the npm packages and of the driver's own, which is `bindings-wasm/dist`. */
export function ensure() {
  if (!existsSync(at("node_modules/esbuild"))) {
    execFileSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: at("."), stdio: "inherit" });
  }
  if (!existsSync(at("bindings-wasm/dist/messina.wasm", ROOT))) {
    execFileSync("cargo", ["xtask", "package"], { cwd: at(".", ROOT), stdio: "inherit" });
  }
}

/** `code` imports `wasm` by the name that `wasmName` says. */
export async function bundle() {
  const { build } = await import("esbuild");
  const made = await build({
    entryPoints: [at("src/worker.ts")],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    conditions: ["workerd"],
    external: ["cloudflare:*"],
    logOverride: { "ignored-bare-import": "silent" },
    plugins: [{
      name: "wasm",
      setup: ({ onResolve }) => onResolve({ filter: /\.wasm$/ }, () => ({ path: `./${WASM}`, external: true })),
    }],
  });
  return { code: made.outputFiles[0].text, wasm: readFileSync(at("bindings-wasm/dist/messina.wasm", ROOT)) };
}

export const WASM = "messina.wasm";
export const COMPATIBILITY_DATE = "2026-04-01";
