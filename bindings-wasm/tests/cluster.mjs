// A simulated cluster in a process of its own, stopped by its id.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** The program that serves a cluster: `MESSINA_SERVE`, or the simulator's example, built if need be. */
function program() {
  if (process.env.MESSINA_SERVE) return process.env.MESSINA_SERVE;
  const build = ["build", "-q", "-p", "messina-sim", "--example", "serve", "--message-format=json"];
  const root = new URL("../..", import.meta.url);
  const lines = execFileSync("cargo", build, { cwd: root, encoding: "utf8", maxBuffer: 1 << 26 }).trim().split("\n");
  const built = lines.map((line) => JSON.parse(line)).find((line) => line.executable && line.target.name === "serve");
  return built.executable;
}

const path = program();

/**
 * @param {string[]} login user and password, if it wants them
 * @returns {Promise<{ contact: string, stop: () => Promise<void> }>}
 */
export async function serve(...login) {
  const child = spawn(path, ["3", "2", "v2", "0", "0", ...login], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  return {
    contact: JSON.parse(line).contact[0],
    stop: async () => {
      child.kill("SIGINT");
      await exited;
    },
  };
}
