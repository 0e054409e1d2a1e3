// Simulated clusters, each in a process of its own, stopped by its id.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";

const ROOT = new URL("../../..", import.meta.url);

/** Where each program is, by the variable that may say so; built if none does. @type {Record<string, string | undefined>} */
const programs = { MESSINA: process.env.MESSINA, MESSINA_INTEROP: process.env.MESSINA_INTEROP };

/** @param {"MESSINA" | "MESSINA_INTEROP"} variable @param {string} crate @param {string} name */
function program(variable, crate, name) {
  if (programs[variable]) return programs[variable];
  const build = ["build", "-q", "-p", crate, "--message-format=json"];
  const lines = execFileSync("cargo", build, { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 26 }).trim().split("\n");
  const built = lines.map((line) => JSON.parse(line)).find((line) => line.executable && line.target.name === name);
  return (programs[variable] = /** @type {string} */ (built.executable));
}

/** The `messina` command: `MESSINA`, or built. */
const command = () => program("MESSINA", "messina-cli", "messina");

/** The login of the node of Cassandra. */
export const CASSANDRA_LOGIN = { user: "cassandra", password: "cassandra" };

/** What is still running: ended with this process, however it ends. @type {Set<import("node:child_process").ChildProcess>} */
const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill()));
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

/** Ends a child with this process, if it has not ended before. @template {import("node:child_process").ChildProcess} T @param {T} child */
export function tied(child) {
  running.add(child);
  child.on("exit", () => running.delete(child));
  return child;
}

/**
 * Starts a command that prints one line of JSON when it is ready.
 *
 * @param {string[]} rest
 * @returns {Promise<{ ready: any, stop: () => Promise<void> }>}
 */
export const start = (...rest) => startProgram(command(), rest);

/** @param {string} path @param {string[]} rest @returns {Promise<{ ready: any, stop: () => Promise<void> }>} */
async function startProgram(path, rest) {
  const child = tied(spawn(path, rest, { stdio: ["pipe", "pipe", "inherit"] }));
  const exited = once(child, "exit");
  const ended = exited.then(([code]) => {
    throw new Error(`${path} ${rest.join(" ")} ended with ${code} before it was ready`);
  });
  const [line] = await Promise.race([once(createInterface({ input: child.stdout }), "line"), ended]);
  // What else it prints is read, or the pipe would fill.
  child.stdout.resume();
  return {
    ready: JSON.parse(line),
    stop: async () => {
      child.kill("SIGINT");
      await exited;
    },
  };
}

/**
 * A simulated cluster on free ports.
 *
 * @param {string[]} rest more options of `messina sim`
 */
export async function cluster(...rest) {
  const { ready, stop } = await start("sim", "--port", "0", "--shard-aware-port", "0", ...rest);
  return { contact: ready.contact, ca: ready.ca, stop, control: (/** @type {object} */ line) => ask(ready.control, line) };
}

/** One node of Apache Cassandra that wants a login. It has no control port. */
export async function cassandra() {
  const path = program("MESSINA_INTEROP", "messina-interop", "messina-interop");
  const { ready, stop } = await startProgram(path, ["cassandra", "--keep", "--auth"]);
  const control = () => Promise.reject(new Error("Cassandra cannot be steered"));
  return { contact: ready.contact, stop, control };
}

/** One question at a control port. @param {string} address @param {object} line */
async function ask(address, line) {
  const [host, port] = address.split(":");
  const socket = connect(Number(port), host);
  socket.write(`${JSON.stringify(line)}\n`);
  try {
    for await (const answer of createInterface({ input: socket })) {
      const parsed = JSON.parse(answer);
      if (!parsed.ok) throw new Error(`${JSON.stringify(line)}: ${parsed.error}`);
      return parsed;
    }
  } finally {
    socket.destroy();
  }
  throw new Error("the control port closed");
}
