// Vercel's edge: WebSockets through a relay, nothing else.
//
// The module is imported, since that platform compiles none at run time.

// @ts-ignore: the build puts the module's file here.
import compiled from "#wasm";

export { webSockets as sockets } from "./websocket.js";

export const loadModule = (): WebAssembly.Module => compiled;
