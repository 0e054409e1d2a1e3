// Runs the suite in every host: `node main.mjs [--host PART]… [--transport NAME]… [--test NAME]… [--cassandra]`.
//
// With `--cassandra` it runs against one node of Apache Cassandra too, in Node 24, workerd and Chromium.
// Prints each host's results as node's test runner does, and at the end a table of hosts by version. Fails if
// a test fails, or if a host ran none.

import { parseArgs } from "node:util";
import { bundleAll } from "./bundle.mjs";
import { cassandra } from "./cluster.mjs";
import { files } from "./files.mjs";
import { HOSTS } from "./runners.mjs";
import { servers } from "./servers.mjs";

/** Hosts that run at a time. */
const TOGETHER = 2;

/** A host that takes longer than this hangs. */
const HOST_MAX_MS = 120_000;

const { values: chosen } = parseArgs({
  options: {
    host: { type: "string", multiple: true },
    transport: { type: "string", multiple: true },
    test: { type: "string", multiple: true },
    cassandra: { type: "boolean" },
  },
});
const isChosen = (/** @type {string} */ name) =>
  chosen.host?.some((part) => name.toLowerCase().includes(part.toLowerCase())) ?? true;

/** Where real Cassandra is met, and how. */
const CASSANDRA = ["Node 24 tcp", "workerd tcp", "workerd mux", "Chromium page mux"];

/** @type {{ name: string, version: string, transport: string, server: string, passed: number, failed: string[], ms: number }[]} */
const reports = [];

/** @typedef {{ host: import("./runners.mjs").Host, transport: string, node?: import("./servers.mjs").Cluster | undefined }} Run */

/** @param {Run} run */
async function runOne({ host, transport, node }) {
  const version = await host.version();
  const started = performance.now();
  /** @type {{ name: string, ms: number, failure?: string }[]} */
  const results = [];
  let broken = "";
  const server = node ? "Cassandra" : "simulator";
  const place = `${host.name} ${version}, ${transport}, ${server}`;
  const line = (/** @type {string} */ text) => {
    try {
      const result = JSON.parse(text);
      results.push(result);
      // At once, since a failure is worth reading before the last host has ended.
      if (result.failure !== undefined) console.log(`✖ ${place}: ${result.name}\n${result.failure}`);
    } catch {
      console.log(`${place}: ${text}`);
    }
  };
  const set = await servers(files, node);
  try {
    await within(HOST_MAX_MS, host.run({ ...set.config, host: `${host.name} ${version}`, transport, canTrust: host.canTrust, only: chosen.test }, line));
  } catch (error) {
    broken = error instanceof Error ? `${error.stack}` : String(error);
  } finally {
    await set.stop();
  }
  const failed = results.filter(({ failure }) => failure !== undefined);
  const ms = performance.now() - started;
  const text = [`▶ ${place}`];
  for (const { name, ms, failure } of results) text.push(`  ${failure === undefined ? "✔" : "✖"} ${name} (${ms.toFixed(1)} ms)`);
  if (broken) text.push(`  ✖ the host did not run to its end: ${broken}`);
  if (results.length === 0) text.push("  ✖ no test ran");
  const failures = [...failed.map(({ name }) => name), ...(broken || results.length === 0 ? ["the host itself"] : [])];
  const passed = results.length - failed.length;
  text.push(`ℹ tests ${passed + failures.length}`, `ℹ pass ${passed}`, `ℹ fail ${failures.length}`, "ℹ skipped 0",
    `ℹ duration_ms ${ms.toFixed(0)}`, "");
  console.log(text.join("\n"));
  reports.push({ name: host.name, version, transport, server, passed, failed: failures, ms });
}

/** @param {number} ms @param {Promise<void>} promise */
async function within(ms, promise) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`not at its end after ${ms} ms`)), ms)));
  await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

await bundleAll();
/** @type {Run[]} */
const queue = HOSTS.filter(({ name }) => isChosen(name)).flatMap((host) =>
  host.transports.filter((name) => chosen.transport?.includes(name) ?? true).map((transport) => ({ host, transport })));
const met = chosen.cassandra ? queue.filter(({ host, transport }) => CASSANDRA.includes(`${host.name} ${transport}`)) : [];
const order = queue.map(({ host, transport }) => `${host.name} ${transport}`);
// It starts while the first hosts run.
const starting = met.length > 0 ? cassandra() : undefined;
const workers = Array.from({ length: TOGETHER }, async () => {
  for (let next = queue.shift(); next; next = queue.shift()) await runOne(next);
});
await Promise.all(workers);
const node = await starting;
for (const run of met) await runOne({ ...run, node });
await node?.stop();

reports.sort((a, b) => order.indexOf(`${a.name} ${a.transport}`) - order.indexOf(`${b.name} ${b.transport}`));
console.log("| host | version | bytes travel by | server | passed | failed | seconds |");
console.log("|---|---|---|---|---:|---:|---:|");
for (const { name, version, transport, server, passed, failed, ms } of reports) {
  console.log(`| ${name} | ${version} | ${transport} | ${server} | ${passed} | ${failed.length} | ${(ms / 1000).toFixed(1)} |`);
}
const sum = (/** @type {(report: typeof reports[0]) => number} */ count) => reports.reduce((total, report) => total + count(report), 0);
console.log(`\nℹ tests ${sum(({ passed, failed }) => passed + failed.length)}`);
console.log(`ℹ pass ${sum(({ passed }) => passed)}`);
console.log(`ℹ fail ${sum(({ failed }) => failed.length)}`);
console.log("ℹ skipped 0");
process.exitCode = reports.length === 0 || reports.some(({ failed }) => failed.length > 0) ? 1 : 0;
// A host that hangs keeps this process otherwise.
process.exit();
