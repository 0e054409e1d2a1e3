// The package in Node: TCP sockets, the module in the file beside this one.

import { readFile } from "node:fs/promises";
import { open } from "./database.js";
import { tcp } from "./node.js";

export { CqlError } from "./error.js";
export { Database, Result, Statement } from "./database.js";

/** @type {Promise<WebAssembly.Module> | undefined} */
let beside;

/** @param {import("./index.d.ts").ConnectOptions} options */
export async function connect({ signal, sockets = tcp, wasm, contactPoints, ...settings }) {
  beside ??= wasm ? undefined : readFile(new URL("./messina.wasm", import.meta.url)).then(WebAssembly.compile);
  const compiled = wasm ?? (await beside);
  const listed = { contactPoints: [contactPoints].flat().join(","), ...settings };
  return open(listed, /** @type {WebAssembly.Module} */ (compiled), sockets, signal);
}
