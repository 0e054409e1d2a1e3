// Simulated clusters, each in a process of its own, stopped by its id.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";

const ROOT = new URL("../../..", import.meta.url);

/** The `messina` command: `MESSINA`, or built if need be. */
export function command() {
  if (process.env.MESSINA) return process.env.MESSINA;
  const build = ["build", "-q", "-p", "messina-cli", "--message-format=json"];
  const lines = execFileSync("cargo", build, { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 26 }).trim().split("\n");
  const built = lines.map((line) => JSON.parse(line)).find((line) => line.executable && line.target.name === "messina");
  process.env.MESSINA = built.executable;
  return built.executable;
}

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
export async function start(...rest) {
  const child = tied(spawn(command(), rest, { stdio: ["ignore", "pipe", "inherit"] }));
  const exited = once(child, "exit");
  const ended = exited.then(([code]) => {
    throw new Error(`messina ${rest.join(" ")} ended with ${code} before it was ready`);
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
