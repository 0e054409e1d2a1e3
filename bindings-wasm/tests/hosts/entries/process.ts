// Node, Deno and Bun: a process that is told by its argument. It ends by itself, since every test closes
// what it opened; after a failure it is ended.

import process from "node:process";
import type { WebSocketClass } from "messina-cql";
import { runSuite } from "./run.js";

// Node 20 has no WebSocket of its own.
const isWithout = !("WebSocket" in globalThis);
const ws = isWithout ? ((await import("ws")).WebSocket as unknown as WebSocketClass) : undefined;

let hasFailed = false;
const line = (text: string) => {
  hasFailed ||= "failure" in JSON.parse(text);
  console.log(text);
};
await runSuite(JSON.parse(process.argv[2]!), line, ws);
if (hasFailed) process.exit(0);
