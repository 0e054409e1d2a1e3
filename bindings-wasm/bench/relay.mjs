// Round trips through the relay, by both of its protocols (`cql`, and one channel of `cql.mux.v1`), against a bare pipe
// from a WebSocket to TCP, in every host that the suite runs in:
// `node bench/relay.mjs [--check] [--host PART]… [--count N] [--turns N]`, after `cargo xtask wasm`, which builds the
// package and fetches the hosts.
//
// Relay, pipe and echoing node are those of the relay's own bench. For each size the ratio of the medians of each pair
// of turns is taken, of which the median is told; bars: 1.2 at 64 B and 4 KB by either protocol, and no median of the
// relay above 5 ms.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { bundleAll } from "../tests/hosts/bundle.mjs";
import { files } from "../tests/hosts/files.mjs";
import { HOSTS } from "../tests/hosts/runners.mjs";

const { values: options } = parseArgs({
  options: {
    check: { type: "boolean", default: false },
    host: { type: "string", multiple: true },
    count: { type: "string", default: "100" },
    turns: { type: "string", default: "9" },
  },
});

const SIZES = [64, 1000, 1024, 1025, 4096, 16_384, 32_768, 65_536];
const JUDGED = [64, 4096];
const RATIO_MAX = 1.2;
const PROTOCOLS = ["cql", "cql.mux.v1"];
const MILLISECONDS_MAX = 5;

/** The relay's bench without its client. It ends with its standard input. */
async function serve() {
  const build = ["bench", "-q", "-p", "messina-relay", "--bench", "latency", "--no-run", "--message-format=json"];
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const lines = execFileSync("cargo", build, { cwd: root, encoding: "utf8", maxBuffer: 1 << 26 }).trim().split("\n");
  const built = lines.map((line) => JSON.parse(line)).find((line) => line.executable && line.target.name === "latency");
  const child = spawn(built.executable, ["--serve"], { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  return { ...JSON.parse(line), stop: () => child.stdin.end() };
}

/** Serves the page of Chromium, isolated from others so that its clock has finer steps. */
async function servePage() {
  const http = createServer((request, response) => {
    response.setHeader("cross-origin-opener-policy", "same-origin");
    response.setHeader("cross-origin-embedder-policy", "require-corp");
    if (!files(request.url ?? "/", response)) response.writeHead(404).end();
  }).listen(0, "127.0.0.1");
  await once(http, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (http.address());
  return { url: `http://127.0.0.1:${port}`, stop: () => (http.closeAllConnections(), http.close()) };
}

const median = (/** @type {number[]} */ numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1] ?? NaN;

await bundleAll();
const servers = await serve();
const page = await servePage();
/** @type {string[]} */
const missed = [];
/** @typedef {{ host: string, version: string, protocol: string, ratios: Record<number, number>, longest: number }} Row */
/** @type {Row[]} */
const rows = [];
try {
  const ways = [servers.pipe, servers.plain, servers.mux];
  for (const { name, version, clockStep, run } of HOSTS) {
    if (options.host && !options.host.some((part) => name.toLowerCase().includes(part.toLowerCase()))) continue;
    const told = await version();
    const own = PROTOCOLS.map((protocol) => /** @type {Row} */ ({ host: name, version: told, protocol, ratios: {}, longest: 0 }));
    rows.push(...own);
    let measured = 0;
    const wanted = { ways, sizes: SIZES, turns: Number(options.turns), count: Number(options.count), clockStep };
    await run({ transport: "cql", control: page.url, roundTrips: wanted }, (text) => {
      const { size, medians: [pipe, ...relayed] } = JSON.parse(text);
      let line = `${name}, ${size} bytes: pipe ${median(pipe).toFixed(3)} ms`;
      measured += 1;
      for (const [at, row] of own.entries()) {
        const relay = /** @type {number[]} */ (relayed[at]);
        const ratio = median(relay.map((took, turn) => took / pipe[turn]));
        line += `, ${row.protocol} ${median(relay).toFixed(3)} ms, ratio ${ratio.toFixed(2)}`;
        row.ratios[size] = ratio;
        row.longest = Math.max(row.longest, median(relay));
        if ((JUDGED.includes(size) && ratio > RATIO_MAX) || median(relay) > MILLISECONDS_MAX) missed.push(`${name} by ${row.protocol} at ${size} bytes`);
      }
      console.log(line);
    });
    if (measured !== SIZES.length) missed.push(`${name}: ${measured} of ${SIZES.length} sizes`);
  }
} finally {
  page.stop();
  servers.stop();
}
console.log(`\n| host | version | protocol | ${JUDGED.map((size) => `ratio at ${size} bytes`).join(" | ")} | longest median, ms |`);
console.log(`|---|---|---|${"---:|".repeat(JUDGED.length + 1)}`);
for (const { host, version, protocol, ratios, longest } of rows) {
  console.log(`| ${[host, version, protocol, ...JUDGED.map((size) => ratios[size]?.toFixed(2)), longest.toFixed(2)].join(" | ")} |`);
}
if (missed.length > 0) {
  console.log(`missed: ${missed.join(", ")}`);
  if (options.check) process.exitCode = 1;
}
