// The module as text in JavaScript, for hosts and bundlers that cannot import or fetch its file.

import { WASM_BASE64 } from "#base64";
import type { CompiledModule } from "./hosts/host.js";

let compiled: Promise<CompiledModule> | undefined;

/**
 * The compiled module, for the option `wasm` of `connect`. Does not suit hosts that forbid compiling at run time
 * (Workers, Vercel's edge); these import the file `messina-cql/messina.wasm`.
 */
export function loadModule(): Promise<CompiledModule> {
  return (compiled ??= WebAssembly.compile(Uint8Array.from(atob(WASM_BASE64), (char) => char.charCodeAt(0))));
}
