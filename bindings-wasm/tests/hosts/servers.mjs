// All servers of one run of the suite, and the HTTP port through which the suite steers them.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { CASSANDRA_LOGIN, cluster, start } from "./cluster.mjs";
import { intercept } from "./intercept.mjs";
import { pipe } from "./pipe.mjs";

export const LOGIN = { user: "alice", password: "secret" };
/** Nobody listens there. A port that was free a moment ago may be another's by now. */
const CLOSED = "127.0.0.1:1";
const TOKEN = "a token of the tests / with + signs";

/** @typedef {import("node:http").ServerResponse} Response */

/** @typedef {{ contact: string[], stop: () => Promise<void>, control: (line: object) => Promise<any> }} Cluster */

/**
 * @param {(path: string, response: Response) => boolean} files serves what else is asked for
 * @param {Cluster} [other] a cluster that runs already and goes on running
 */
export async function servers(files, other) {
  const [main, guarded, secure] = await Promise.all([
    other ? { ...other, stop: async () => {} } : cluster("--nodes", "3", "--shards", "2"),
    cluster("--nodes", "1", "--shards", "2", "--user", LOGIN.user, "--password", LOGIN.password),
    cluster("--nodes", "1", "--shards", "2", "--tls"),
  ]);
  // As slow as a real login: what comes beside it has to wait.
  await guarded.control({ cmd: "delay", node: 0, ms: 50 });
  const piped = await pipe();
  const between = await intercept(main.contact[0]);
  const mute = await silent();
  let relay = await startRelay(0);
  const relayPort = new URL(relay.url).port;

  const commands = {
    sim: (/** @type {any} */ line) => main.control(line),
    intercept: (/** @type {any} */ rules) => between.set(rules),
    async relay(/** @type {{ do: "stop" | "start" | "count" }} */ told) {
      if (told.do === "count") return counters(await (await fetch(relay.metrics)).text());
      if (told.do === "stop") await relay.stop();
      else relay = await startRelay(Number(relayPort));
    },
  };
  const http = createServer(async (request, response) => {
    const path = new URL(request.url ?? "/", "http://control").pathname;
    response.setHeader("access-control-allow-origin", "*");
    response.setHeader("access-control-allow-headers", "*");
    if (request.method !== "POST") {
      if (request.method === "OPTIONS" || !files(path, response)) response.writeHead(request.method === "OPTIONS" ? 204 : 404).end();
      return;
    }
    try {
      const command = commands[/** @type {keyof typeof commands} */ (path.slice(1))];
      let text = "";
      for await (const chunk of request) text += chunk;
      response.end(JSON.stringify((await command(JSON.parse(text))) ?? null));
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (http.address());
  return {
    /** What the suite is told. */
    config: {
      contact: main.contact,
      server: other ? "Cassandra" : "simulated",
      ...(other && { login: CASSANDRA_LOGIN }),
      guarded: other ? { contact: other.contact[0], ...CASSANDRA_LOGIN } : { contact: guarded.contact[0], ...LOGIN },
      tls: { contact: secure.contact[0], ca: readFileSync(secure.ca, "utf8") },
      relay: { url: relay.url, token: TOKEN },
      pipe: piped.url,
      intercepted: between.contact,
      silent: mute.contact,
      closed: CLOSED,
      control: `http://127.0.0.1:${port}`,
    },
    async stop() {
      http.closeAllConnections();
      http.close();
      piped.stop();
      between.stop();
      mute.stop();
      await Promise.all([main.stop(), guarded.stop(), secure.stop(), relay.stop()]);
    },
  };
}

/** A port where nobody answers. */
async function silent() {
  const sockets = new Set();
  const server = createTcpServer((socket) => {
    sockets.add(socket.on("error", () => {}).resume());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    contact: `127.0.0.1:${port}`,
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** @param {number} port */
async function startRelay(port) {
  const { ready, stop } = await start("relay", "--listen", `127.0.0.1:${port}`, "--allow", "127.0.0.0/8:1024-65535", "--allow", CLOSED,
    "--log", "warn", "--metrics", "127.0.0.1:0", "--token", TOKEN);
  return { url: ready.url, metrics: `http://${ready.metrics}/metrics`, stop };
}

/** The sums of a relay's counters over all labels. @param {string} text */
function counters(text) {
  /** @type {Record<string, number>} */
  const sums = {};
  for (const [, name, value] of text.matchAll(/^messina_relay_(\w+)(?:\{.*\})? (\d+)$/gm)) sums[name] = (sums[name] ?? 0) + Number(value);
  return sums;
}
