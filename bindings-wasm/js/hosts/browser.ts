// Pages and their workers, and any host of which nothing is known: WebSockets through a relay.

import { CqlError } from "../error.js";

export { webSockets as sockets } from "./websocket.js";

/**
 * Fetches the module from the file beside the package's code and compiles it while it comes.
 *
 * A page with a Content-Security-Policy must allow `script-src 'wasm-unsafe-eval'`, and `connect-src`
 * to its own origin and the relay.
 */
export async function loadModule(): Promise<WebAssembly.Module> {
  if (compiled) return compiled;
  const url = new URL(WASM_FILE, import.meta.url);
  const response = await fetch(url);
  if (!response.ok) throw new CqlError("config", `${url}: status ${response.status} instead of the module`);
  try {
    const isNamed = response.headers.get("content-type")?.startsWith("application/wasm");
    // Servers that do not know the type of the file cost the streaming, no more.
    return (compiled ??= isNamed
      ? await WebAssembly.compileStreaming(response)
      : await WebAssembly.compile(await response.arrayBuffer()));
  } catch (cause) {
    const hint = "does the page's Content-Security-Policy allow script-src 'wasm-unsafe-eval'?";
    throw new CqlError("config", `${url} cannot be compiled; ${hint}`, { cause });
  }
}

/** The build says where it lies. */
declare const WASM_FILE: string;

let compiled: WebAssembly.Module | undefined;
