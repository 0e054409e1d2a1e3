// Runs the suite in Vercel's edge VM, in a process of its own.

import { EdgeVM } from "@edge-runtime/vm";
import { readFileSync } from "node:fs";
import { modules } from "./bundle.mjs";

const file = (/** @type {string} */ path) => readFileSync(new URL(path, import.meta.url));
const compiledModules = Object.fromEntries(modules().map(({ name, bytes }) => [name, new WebAssembly.Module(bytes)]));
const vm = new EdgeVM({ extend: (context) => Object.assign(context, { compiledModules }) });
vm.evaluate(`${file("built/edge.js")}`);
await vm.context.runSuite(JSON.parse(process.argv[2]), (/** @type {string} */ line) => console.log(line));
process.exit();
