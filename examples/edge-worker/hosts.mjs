// Two programs that run Workers on this machine: Miniflare, and workerd alone as it runs in production.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { COMPATIBILITY_DATE, WASM } from "./bundle.mjs";

/** Runs the Worker in Miniflare. */
export async function miniflare({ code, wasm }, variables, port = 0) {
  const { Miniflare } = await import("miniflare");
  const host = new Miniflare({
    host: "127.0.0.1",
    port,
    compatibilityDate: COMPATIBILITY_DATE,
    modules: [
      { type: "ESModule", path: "worker.js", contents: code },
      { type: "CompiledWasm", path: WASM, contents: wasm },
    ],
    bindings: variables,
    kvNamespaces: ["WARM"],
    durableObjects: { POOL: "Pool" },
  });
  const url = await host.ready;
  return { url: url.origin, stop: () => host.dispose() };
}

/** Runs the Worker in workerd, with a configuration of its own. */
export async function workerd({ code, wasm }, variables, port) {
  const folder = mkdtempSync(join(tmpdir(), "messina-worker-"));
  port ||= await freePort();
  writeFileSync(join(folder, "worker.js"), code);
  writeFileSync(join(folder, WASM), wasm);
  writeFileSync(join(folder, "config.capnp"), configuration(variables, port));
  // Miniflare brings it along.
  const from = createRequire(createRequire(import.meta.url).resolve("miniflare"));
  const child = spawn(from("workerd").default, ["serve", join(folder, "config.capnp")], { stdio: "inherit" });
  const exited = once(child, "exit");
  process.once("exit", () => child.kill("SIGTERM"));
  const stop = async () => {
    child.kill("SIGTERM");
    await exited;
    rmSync(folder, { recursive: true });
  };
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; child.exitCode === null && tries < 200; tries++) {
    const isUp = await fetch(url).then(() => true, () => false);
    if (isUp) return { url, stop };
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await stop();
  throw new Error("workerd did not start");
}

/** On this machine the cluster has loopback addresses, which a network must be allowed to reach. */
function configuration(variables, port) {
  const bindings = Object.entries(variables).map(([name, value]) => `(name = "${name}", text = ${JSON.stringify(value)}),`);
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["local", "private", "public"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);

const worker :Workerd.Worker = (
  modules = [
    (name = "worker.js", esModule = embed "worker.js"),
    (name = "${WASM}", wasm = embed "${WASM}"),
  ],
  compatibilityDate = "${COMPATIBILITY_DATE}",
  bindings = [
    ${bindings.join("\n    ")}
    (name = "POOL", durableObjectNamespace = "Pool"),
  ],
  durableObjectNamespaces = [(className = "Pool", uniqueKey = "messina-example")],
  durableObjectStorage = (inMemory = void),
);
`;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
