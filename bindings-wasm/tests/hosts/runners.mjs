// One runner for each host: starts it, has it run the suite or measure, and yields a line for each result.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { modules } from "./bundle.mjs";
import { tied } from "./cluster.mjs";

const at = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const node22 = at("node_modules/node-22/bin/node");
const node24 = at("node_modules/node-24/bin/node");
const deno = at("node_modules/@deno/linux-x64-glibc/deno");
const bun = at("node_modules/@oven/bun-linux-x64/bin/bun");
const workerd = at("node_modules/@cloudflare/workerd-linux-64/bin/workerd");

/** The date whose behaviour Workers ask for; both workerds know it. */
const COMPATIBILITY_DATE = "2026-04-01";

/**
 * @typedef {Record<string, any>} Config
 * @typedef {(line: string) => void} Line
 *
 * `clockStep`: milliseconds between two different readings of its clock, 0 if they are few beside a round trip.
 *
 * @typedef {{ name: string, version: () => Promise<string>, transports: string[], canTrust: boolean, clockStep: number, run: (config: Config, line: Line) => Promise<void> }} Host
 */

/** A program's output, trimmed. @param {string} program @param {string[]} rest */
async function ask(program, ...rest) {
  const child = spawn(program, rest, { stdio: ["ignore", "pipe", "ignore"] });
  let text = "";
  for await (const chunk of child.stdout) text += chunk;
  return text.trim();
}

/**
 * Runs a program to its end, whose lines of JSON are results.
 *
 * @param {string} program @param {string[]} rest @param {Line} line
 */
async function lines(program, rest, line) {
  const child = tied(spawn(program, rest, { stdio: ["ignore", "pipe", "inherit"], cwd: at(".") }));
  const exited = once(child, "exit");
  for await (const text of createInterface({ input: child.stdout })) line(text);
  const [code, signal] = await exited;
  if (code !== 0) throw new Error(`ended with ${code ?? signal}`);
}

/** @param {string} name @param {string} program @param {string[]} flags @returns {Host} */
const processHost = (name, program, ...flags) => ({
  name,
  transports: ["tcp", "mux", "cql"],
  canTrust: true,
  clockStep: 0,
  version: async () => /[\d.]+/.exec(await ask(program, "--version"))?.[0] ?? "",
  run: (config, line) => lines(program, [...flagsFor(flags, config), at("built/process.js"), JSON.stringify(config)], line),
});

/** Node 20 has WebSockets by a flag only; without it the package has to say so. @param {string[]} flags @param {Config} config */
const flagsFor = (flags, { transport }) => (transport === "tcp" ? flags.filter((flag) => !flag.includes("websocket")) : flags);

/**
 * Each test in its own request; what is measured in one.
 *
 * @param {(path: string, config: Config) => Promise<string>} post @param {Config} config @param {Line} line
 */
async function byRequest(post, config, line) {
  if (config.roundTrips) {
    for (const text of (await post("/run", config)).split("\n")) line(text);
    return;
  }
  const names = JSON.parse(await post("/names", config));
  for (const name of names) {
    if (config.only && !config.only.includes(name)) continue;
    line(await post("/run", { ...config, only: [name] }));
  }
  await post("/keep", config);
  line(await post("/use", config));
}

/** @type {Host} */
const workerdHost = {
  name: "workerd",
  transports: ["tcp", "mux", "cql"],
  canTrust: false,
  // Its clock stands still while it computes, and counts milliseconds.
  clockStep: 1,
  version: async () => /\d[\d-]+/.exec(await ask(workerd, "--version"))?.[0] ?? "",
  async run(config, line) {
    const folder = mkdtempSync(join(tmpdir(), "messina-workerd-"));
    const port = await freePort();
    writeFileSync(join(folder, "worker.js"), readFileSync(at("built/worker.js")));
    const embedded = modules().map(({ name, bytes }) => {
      writeFileSync(join(folder, name), bytes);
      return `(name = "${name}", wasm = embed "${name}"),`;
    });
    if (config.tls) writeFileSync(join(folder, "ca.pem"), config.tls.ca);
    writeFileSync(join(folder, "config.capnp"), `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    ( name = "main", worker = (
        modules = [
          (name = "worker.js", esModule = embed "worker.js"),
          ${embedded.join("\n          ")}
        ],
        compatibilityDate = "${COMPATIBILITY_DATE}" ) ),
    ( name = "internet", network = (
        allow = ["local", "private", "public"],
        tlsOptions = (trustedCertificates = [${config.tls ? 'embed "ca.pem"' : ""}]) ) ),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
`);
    const child = tied(spawn(workerd, ["serve", join(folder, "config.capnp")], { stdio: ["ignore", "inherit", "inherit"] }));
    const exited = once(child, "exit");
    try {
      const post = async (/** @type {string} */ path, /** @type {Config} */ body) => {
        const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", body: JSON.stringify(body) });
        return response.text();
      };
      await untilReady(() => fetch(`http://127.0.0.1:${port}/ready`, { method: "POST", body: "{}" }));
      await byRequest(post, config, line);
    } finally {
      child.kill();
      await exited;
      rmSync(folder, { recursive: true });
    }
  },
};

/** @type {Host} */
const miniflareHost = {
  name: "Miniflare",
  transports: ["tcp", "mux", "cql"],
  canTrust: false,
  // Its clock stands still while it computes, and counts milliseconds.
  clockStep: 1,
  version: async () => versionOf("miniflare"),
  async run(config, line) {
    const { Miniflare } = await import("miniflare");
    const flare = new Miniflare({
      compatibilityDate: COMPATIBILITY_DATE,
      modules: [
        { type: "ESModule", path: "worker.js", contents: readFileSync(at("built/worker.js"), "utf8") },
        ...modules().map(({ name, bytes }) => ({ type: /** @type {const} */ ("CompiledWasm"), path: name, contents: bytes })),
      ],
    });
    try {
      await flare.ready;
      const post = async (/** @type {string} */ path, /** @type {Config} */ body) => {
        const response = await flare.dispatchFetch(`http://worker${path}`, { method: "POST", body: JSON.stringify(body) });
        return response.text();
      };
      await byRequest(post, config, line);
    } finally {
      await flare.dispose();
    }
  },
};

/** @type {Host} */
const edgeHost = {
  name: "Vercel edge VM",
  transports: ["mux", "cql"],
  canTrust: false,
  clockStep: 0,
  version: async () => versionOf("@edge-runtime/vm"),
  run: (config, line) => lines(process.execPath, [at("edge.mjs"), JSON.stringify(config)], line),
};

/** @param {string} name @param {boolean} inWorker @returns {Host} */
const chromiumHost = (name, inWorker) => ({
  name,
  transports: ["mux", "cql"],
  canTrust: false,
  // Of a page that is isolated from others; else 0.1.
  clockStep: 0.005,
  version: async () => /[\d.]+/.exec(await ask("chromium", "--version"))?.[0] ?? "",
  async run(config, line) {
    const { chromium } = await import("playwright-core");
    const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"];
    const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: flags });
    try {
      const page = await browser.newPage();
      page.on("pageerror", (error) => console.error(`page: ${error.message}`));
      // Every refused WebSocket makes a line that tests expect.
      const isNews = (/** @type {import("playwright-core").ConsoleMessage} */ message) =>
        message.type() === "error" && !message.text().startsWith("WebSocket connection to");
      page.on("console", (message) => isNews(message) && console.error(`page: ${message.text()}`));
      await page.exposeFunction("tell", line);
      await page.goto(`${config.control}/page.html`);
      await page.evaluate(([config, inWorker]) => /** @type {any} */ (globalThis).begin(config, inWorker), [config, inWorker]);
    } finally {
      await browser.close();
    }
  },
});

/** @type {Host[]} */
export const HOSTS = [
  processHost("Node 20", process.env.NODE_20 ?? "node", "--experimental-websocket"),
  processHost("Node 22", node22),
  processHost("Node 24", node24),
  processHost("Deno", deno, "run", "--allow-all", "--no-lock", "--quiet"),
  processHost("Bun", bun),
  workerdHost,
  miniflareHost,
  edgeHost,
  chromiumHost("Chromium page", false),
  chromiumHost("Chromium worker", true),
];

/** @param {string} name */
function versionOf(name) {
  const path = createRequire(import.meta.url).resolve.paths(name)?.map((folder) => join(folder, name, "package.json"));
  for (const candidate of path ?? []) {
    try {
      return JSON.parse(readFileSync(candidate, "utf8")).version;
    } catch {
      // Not in this folder.
    }
  }
  return "";
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  server.close();
  await once(server, "close");
  return port;
}

/** @param {() => Promise<unknown>} attempt */
async function untilReady(attempt) {
  for (let left = 100; ; left--) {
    try {
      return await attempt();
    } catch (error) {
      if (left === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
