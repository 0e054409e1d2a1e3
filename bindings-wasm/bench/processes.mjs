// The processes of a run: the simulated cluster and one process for each driver, so that none shares a heap or
// compiled code with another. All are stopped by their ids.

import { execFileSync, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

/** The program `messina`: `MESSINA`, or built from this tree. */
export function command() {
  if (process.env.MESSINA) return process.env.MESSINA;
  const build = ["build", "-q", "--release", "-p", "messina-cli", "--message-format=json"];
  const cwd = new URL("../..", import.meta.url);
  const lines = execFileSync("cargo", build, { cwd, encoding: "utf8", maxBuffer: 1 << 26 }).trim().split("\n");
  const built = lines.map((line) => JSON.parse(line)).find((line) => line.executable && line.target.name === "messina");
  return built.executable;
}

/**
 * A simulated cluster on free ports.
 *
 * @param {string[]} rest more arguments
 */
export async function simulate(...rest) {
  const child = spawn(command(), ["sim", "--port", "0", "--shard-aware-port", "0", ...rest], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  const { contact, control } = JSON.parse(line);
  return { pid: /** @type {number} */ (child.pid), contact: contact[0], control, stop: () => stop(child) };
}

/** @param {import("node:child_process").ChildProcess} child */
export async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGINT");
  await exited;
}

/** CPU seconds that a process has used; NaN where `/proc` does not tell. @param {number} pid */
export function cpuSeconds(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ");
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return NaN;
  }
}

/** Resident memory of a process, in bytes. @param {number} pid */
export function residentBytes(pid) {
  const found = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(found?.[1]) * 1024;
}

/**
 * A driver in its own process. `ask` sends one message and waits for the answer.
 *
 * @param {{ name: string, driver: string, contact: string, routing?: string }} subject
 */
export async function startSubject(subject) {
  const execArgv = ["--expose-gc", ...(process.env.SUBJECT_FLAGS ?? "").split(" ").filter(Boolean)];
  const child = fork(new URL("subject.mjs", import.meta.url), [JSON.stringify(subject)], { execArgv });
  /** @type {{ resolve: (said: any) => void, reject: (error: Error) => void } | undefined} */
  let waiting;
  child.on("message", (said) => waiting?.resolve(said));
  child.on("exit", (code) => waiting?.reject(new Error(`${subject.name} ended with ${code}`)));
  const answer = () => new Promise((resolve, reject) => { waiting = { resolve, reject }; });
  const ready = await answer();
  return {
    ...subject,
    version: ready.version,
    pid: /** @type {number} */ (child.pid),
    /** @param {Record<string, unknown>} message */
    ask(message) {
      const answered = answer();
      child.send(message);
      return answered;
    },
    async stop() {
      const exited = once(child, "exit");
      child.disconnect();
      await exited;
    },
  };
}
