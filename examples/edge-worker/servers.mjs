// What the Worker talks to: a simulated cluster and a relay, each a process of its own that is stopped by its id.

import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";

export const ROOT = new URL("../../", import.meta.url);

/** The `messina` command: that of `MESSINA`, or built. */
function command() {
  if (process.env.MESSINA) return process.env.MESSINA;
  const build = ["build", "--quiet", "--package", "messina-cli", "--message-format=json"];
  const lines = execFileSync("cargo", build, { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 26 }).trim().split("\n");
  const built = lines.map((line) => JSON.parse(line)).find((line) => line.executable && line.target.name === "messina");
  return (process.env.MESSINA = built.executable);
}

/** Starts `messina …`, which prints one line of JSON when it is ready. */
async function start(...rest) {
  const child = spawn(command(), rest, { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  // However this process ends: Miniflare ends it at an interrupt by itself.
  process.once("exit", () => child.kill("SIGINT"));
  const failed = exited.then(([code]) => {
    throw new Error(`messina ${rest[0]} ended with ${code} before it was ready`);
  });
  const [line] = await Promise.race([once(createInterface({ input: child.stdout }), "line"), failed]);
  child.stdout.resume();
  const stop = async () => {
    child.kill("SIGINT");
    await exited;
  };
  return { ready: JSON.parse(line), stop };
}

/** A cluster of three nodes with the table, and variables of the Worker that lead there, by TCP or by a relay. */
export async function servers(isRelayed) {
  const cluster = await start("sim", "--port", "0", "--shard-aware-port", "0");
  const contact = cluster.ready.contact;
  const stops = [cluster.stop];
  const variables = { CONTACT_POINTS: contact.join(",") };
  try {
    execFileSync(command(), ["query", "--contact", contact[0], ...STATEMENTS], { stdio: ["ignore", "ignore", "inherit"] });
    if (isRelayed) {
      const token = randomBytes(16).toString("base64url");
      const relay = await start("relay", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8:1-65535", "--log", "warn", `--token=${token}`);
      stops.push(relay.stop);
      Object.assign(variables, { RELAY_URL: `ws://${relay.ready.listen}/cql`, RELAY_TOKEN: token });
    }
  } catch (error) {
    await Promise.all(stops.map((stop) => stop()));
    throw error;
  }
  return { variables, counted: () => counted(cluster.ready.control), stop: () => Promise.all(stops.map((stop) => stop())) };
}

/** What all nodes counted, by the cluster's control port. */
async function counted(control) {
  const [host, port] = control.split(":");
  const socket = connect(Number(port), host);
  socket.write(`${JSON.stringify({ cmd: "stats" })}\n`);
  const [line] = await once(createInterface({ input: socket }), "line");
  socket.destroy();
  const { nodes } = JSON.parse(line);
  const sum = (name) => nodes.reduce((sum, node) => sum + node[name], 0);
  return { connections: sum("connections"), prepares: sum("prepares"), queries: sum("queries") };
}

const STATEMENTS = [
  "CREATE KEYSPACE edge WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}",
  "CREATE TABLE edge.items (id text PRIMARY KEY, name text, stock int, updated timestamp)",
];
