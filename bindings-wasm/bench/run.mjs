// Measures the package against `cassandra-driver`: `node bench/run.mjs [--quick] [--check] [--json FILE]
// [--rounds N] [--seconds N] [--only WORK] [--routing single|full]`.
//
// One run, one simulated cluster with fixed answers, one process a driver. The drivers take turns
// (A B A B), so that what else the machine does falls on both alike; each pair of turns gives one
// ratio, of which the median and the spread are told. A bar is judged by the median.

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { connect } from "./package.mjs";
import { cpuSeconds, simulate, startSubject } from "./processes.mjs";
import { spread } from "./statistics.mjs";
import { PAGE_ROWS, fill } from "./workload.mjs";

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    json: { type: "string" },
    rounds: { type: "string" },
    seconds: { type: "string" },
    only: { type: "string" },
    routing: { type: "string" },
  },
});
const rounds = Number(options.rounds ?? (options.quick ? 3 : 7));
const seconds = Number(options.seconds ?? (options.quick ? 0.7 : 2));

/**
 * What is measured: the work, how many requests are in flight, how many times as fast the package has to be. With
 * one in flight it waits for the network most of the time.
 */
const POINTS = [
  { work: "select", inFlight: 1, bar: 0.95 },
  { work: "select", inFlight: 64, bar: 1 },
  { work: "select", inFlight: 512, bar: 1 },
  { work: "insert", inFlight: 1, bar: 0.95 },
  { work: "insert", inFlight: 64, bar: 1 },
  { work: "insert", inFlight: 512, bar: 1 },
  { work: "objects", inFlight: 8, bar: 1.5 },
  { work: "column", inFlight: 8, bar: 3 },
].filter(({ work }) => !options.only || options.only.split(",").includes(work));

const cluster = await simulate("--lean");
const subjects = [];
try {
  const db = await connect({ contactPoints: cluster.contact });
  await fill(db);
  await db.close();
  for (const subject of [
    { name: "messina-cql", driver: "messina", contact: cluster.contact, routing: options.routing },
    { name: "cassandra-driver", driver: "cassandra", contact: cluster.contact },
  ]) subjects.push(await startSubject(subject));

  const results = [];
  for (const point of POINTS) {
    const result = await compare(point);
    console.log(line(result));
    results.push(result);
  }
  const versions = Object.fromEntries(subjects.map(({ name, version }) => [name, version]));
  console.log(table(results));
  if (options.json) {
    const report = { node: process.version, versions, rounds, seconds, pageRows: PAGE_ROWS, results };
    writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
  }
  const missed = results.filter(({ ratio, bar }) => ratio.median < bar);
  for (const { work, inFlight, ratio, bar } of missed) {
    console.log(`missed: ${work} at ${inFlight} in flight: ${ratio.median.toFixed(2)} x, wanted ${bar} x`);
  }
  if (options.check && missed.length > 0) process.exitCode = 1;
} finally {
  for (const subject of subjects) await subject.stop();
  await cluster.stop();
}

/** @param {typeof POINTS[number]} point */
async function compare({ work, inFlight, bar }) {
  /** @type {{ rate: number, cpu: number, server: number, heap: number, external: number, rss: number }[][]} */
  const turns = subjects.map(() => []);
  // Alone in flight, a turn is fast or slow by where the system wakes both ends; many short turns even that out.
  const parts = inFlight === 1 ? 4 : 1;
  const count = rounds * parts;
  for (let round = -1; round < count; round++) {
    for (const [at, subject] of subjects.entries()) {
      const before = cpuSeconds(cluster.pid);
      const said = await subject.ask({ work, inFlight, seconds: round < 0 ? 1 : seconds / parts, memory: round === count - 1 });
      const server = (cpuSeconds(cluster.pid) - before) / said.seconds;
      // The first turn warms up.
      if (round >= 0) turns[at].push({ ...said, rate: said.count / said.seconds, cpu: said.cpu / said.count, server, share: said.cpu / said.seconds });
    }
  }
  const ratios = (/** @type {"rate" | "cpu"} */ what) => spread(turns[0].map((turn, at) => turn[what] / turns[1][at][what]));
  const sides = subjects.map(({ name }, at) => {
    const { heap, external, rss } = turns[at][count - 1];
    const of = (/** @type {string} */ what) => spread(turns[at].map((turn) => /** @type {any} */ (turn)[what]));
    return { name, rate: of("rate"), cpu: of("cpu"), share: of("share"), server: of("server"), heap, external, rss };
  });
  return { work, inFlight, bar, ratio: ratios("rate"), cpuRatio: ratios("cpu"), sides };
}

/** @param {Awaited<ReturnType<typeof compare>>} result */
function line({ work, inFlight, ratio, cpuRatio, sides, bar }) {
  const [ours, theirs] = sides.map(({ rate, cpu, share, server, heap, external }) =>
    `${rate.median.toFixed(0)}/s ${(cpu.median * 1e6).toFixed(1)} µs CPU, shares ${share.median.toFixed(2)} + server ${server.median.toFixed(2)}, ` +
    `held ${((heap + external) / 1e6).toFixed(1)} MB`);
  return `${work} x ${inFlight}: ${ratio.median.toFixed(2)} x (${ratio.least.toFixed(2)} to ${ratio.most.toFixed(2)}, bar ${bar}), ` +
    `CPU ${cpuRatio.median.toFixed(2)} x\n    ours   ${ours}\n    theirs ${theirs}`;
}

/** @param {Awaited<ReturnType<typeof compare>>[]} results */
function table(results) {
  const [ours, theirs] = subjects.map(({ name, version }) => `${name} ${version}`);
  const head = `| work | in flight | ${ours} /s | ${theirs} /s | ratio (spread) | bar | CPU µs | CPU µs | held MB | held MB |\n|---|---|---|---|---|---|---|---|---|---|`;
  return [head, ...results.map(({ work, inFlight, ratio, bar, sides: [a, b] }) => {
    const cells = [
      work, inFlight, a.rate.median.toFixed(0), b.rate.median.toFixed(0),
      `${ratio.median.toFixed(2)} x (${ratio.least.toFixed(2)} to ${ratio.most.toFixed(2)})`, `${bar} x`,
      (a.cpu.median * 1e6).toFixed(1), (b.cpu.median * 1e6).toFixed(1),
      ((a.heap + a.external) / 1e6).toFixed(1), ((b.heap + b.external) / 1e6).toFixed(1),
    ];
    return `| ${cells.join(" | ")} |`;
  })].join("\n");
}
