// Node, Deno and Bun: a process that is told by its argument. It ends by itself, since every test closes
// what it opened; after a failure it is ended.

import process from "node:process";
import { runSuite } from "./run.js";

let hasFailed = false;
await runSuite(JSON.parse(process.argv[2]!), (line) => {
  hasFailed ||= "failure" in JSON.parse(line);
  console.log(line);
});
if (hasFailed) process.exit(0);
