// Round trips through the relay against a bare pipe from a WebSocket to TCP, in each host that is a program:
// `node bench/relay.mjs [--check] [--count N]`. Run `npm ci --ignore-scripts` in tests/hosts first.
//
// Relay, pipe and echoing node are those of the relay's own bench. For each size the ratio of the medians of each pair
// of turns is taken, of which the median is told; bars: 1.2 at 64 B and 4 KB, and no median of the relay above 5 ms.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values: options } = parseArgs({
  options: { check: { type: "boolean", default: false }, count: { type: "string", default: "300" } },
});

const SIZES = [64, 1000, 1024, 1025, 4096, 16_384, 32_768, 65_536];
const RATIO_MAX = /** @type {Record<number, number>} */ ({ 64: 1.2, 4096: 1.2 });
const MILLISECONDS_MAX = 5;

const at = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const hosts = (/** @type {string} */ path) => at(`../tests/hosts/node_modules/${path}`);
const HOSTS = [
  { name: "Node 20", program: process.execPath, rest: ["--experimental-websocket"] },
  { name: "Node 22", program: hosts("node-22/bin/node"), rest: [] },
  { name: "Node 24", program: hosts("node-24/bin/node"), rest: [] },
  { name: "Deno", program: hosts("@deno/linux-x64-glibc/deno"), rest: ["run", "--allow-net", "--no-lock"] },
  { name: "Bun", program: hosts("@oven/bun-linux-x64/bin/bun"), rest: [] },
];

/** The servers: the relay's bench without its client. It ends with its standard input. */
async function serve() {
  const build = ["bench", "-q", "-p", "messina-relay", "--bench", "latency", "--no-run", "--message-format=json"];
  const lines = execFileSync("cargo", build, { cwd: at("../.."), encoding: "utf8", maxBuffer: 1 << 26 }).trim().split("\n");
  const built = lines.map((line) => JSON.parse(line)).find((line) => line.executable && line.target.name === "latency");
  const child = spawn(built.executable, ["--serve"], { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  return { ...JSON.parse(line), stop: () => child.stdin.end() };
}

const median = (/** @type {number[]} */ numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];

const servers = await serve();
const missed = [];
try {
  console.log("| host | bytes | pipe ms | relay ms | ratio |\n|---|---|---|---|---|");
  for (const { name, program, rest } of HOSTS) {
    const ways = [
      { url: servers.pipe, protocols: [] },
      { url: `${servers.relay}?target=${servers.node}`, protocols: ["cql"] },
    ];
    const argument = JSON.stringify({ ways, sizes: SIZES, turns: 5, count: Number(options.count) });
    const text = execFileSync(program, [...rest, at("relay-client.mjs"), argument], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
    for (const line of text.trim().split("\n")) {
      const { size, medians: [pipe, relay] } = JSON.parse(line);
      const ratio = median(relay.map((/** @type {number} */ took, /** @type {number} */ turn) => took / pipe[turn]));
      console.log(`| ${name} | ${size} | ${median(pipe).toFixed(3)} | ${median(relay).toFixed(3)} | ${ratio.toFixed(2)} |`);
      if (ratio > (RATIO_MAX[size] ?? Infinity) || median(relay) > MILLISECONDS_MAX) missed.push(`${name} at ${size} bytes`);
    }
  }
} finally {
  servers.stop();
}
if (missed.length > 0) {
  console.log(`missed: ${missed.join(", ")}`);
  if (options.check) process.exitCode = 1;
}
