// The page in headless Chromium: `node test.mjs`.
//
// `CHROMIUM` names the browser, /usr/bin/chromium by default. Screenshots go to the folder `browser-example` of cargo's
// target folder.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const HERE = fileURLToPath(new URL(".", import.meta.url));
const SWITCHES = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

if (!existsSync(join(HERE, "node_modules/playwright-core"))) {
  execFileSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: HERE, stdio: "inherit" });
}
const { chromium } = await import("playwright-core");

const server = await start();
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: SWITCHES });
const complaints = [];
let [passed, failed] = [0, 0];

/** A page of its own; what it complains of is kept. */
async function open({ width = 1280, height = 940, ...rest } = {}) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: "dark", ...rest });
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(server.url);
  await page.waitForSelector(".pill.up");
  return page;
}

async function test(what, check) {
  try {
    await check();
    passed++;
    console.log(`ok      ${what}`);
  } catch (error) {
    failed++;
    console.log(`FAILED  ${what}\n${error.stack}`);
  }
}

const folder = join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "browser-example");
mkdirSync(folder, { recursive: true });
const shoot = (page, name) => page.screenshot({ path: join(folder, `${name}.png`) });

const page = await open();
const state = () => page.evaluate(() => fetch("state?keyspace=bank&table=accounts").then((answer) => answer.json()));
const text = (selector) => page.textContent(selector);
const logged = (pattern) => page.waitForFunction((source) => new RegExp(source).test(document.querySelector("#log").textContent), pattern.source);
const press = (action) => page.click(`[data-action="${action}"]`);
const load = (step) => page.$eval("#load", (slider, value) => { slider.value = value; slider.dispatchEvent(new Event("input")); }, step);

await test("the first query's rows are seen with their types", async () => {
  await page.waitForSelector("#rows tbody tr");
  assert.equal((await page.$$("#rows tbody tr")).length, 100);
  assert.deepEqual(await page.$$eval("#rows th small", (types) => types.map((type) => type.textContent)),
    ["int", "text", "decimal", "int", "set<text>", "timestamp"]);
  await page.click("#more");
  await page.waitForFunction(() => document.querySelectorAll("#rows tbody tr").length === 200);
});

await test("a query by key says which node and shard it reached", async () => {
  await page.fill("#text", "SELECT * FROM bank.accounts WHERE id = 42 -- by key; once");
  await page.focus("#text");
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => /^1 row in .* ms from n[123] · shard [0-3]$/.test(document.querySelector("#answer").textContent.trim().replace("★ ", "")));
  assert.match(await text("#rows tbody"), /^42/);
  assert.equal(await text("#colours .keyword"), "SELECT");
});

await test("a mistake is told in the server's words", async () => {
  await page.fill("#text", "SELEC 1");
  await page.click("#form [type=submit]");
  await page.waitForSelector("#answer.bad");
  assert.match(await text("#answer"), /syntax/);
});

await test("the map shows nodes, shards, tablets and leaders", async () => {
  await page.waitForFunction(() => document.querySelectorAll(".shard .links i").length === 12);
  assert.equal((await page.$$(".node")).length, 3);
  assert.equal((await page.$$(".tablet-arc")).length, 16);
  assert.equal((await page.$$("#tablet .chip.leader")).length > 0, true);
  const labels = await page.$$eval(".tablet-arc", (arcs) => arcs.map((arc) => arc.getAttribute("aria-label")));
  assert.ok(labels.every((label, at) => label.startsWith(`Tablet ${at}: leader node `)), labels[0]);
});

await test("only strongly consistent tables have leaders", async () => {
  await page.click("#tables label:first-child");
  await page.waitForFunction(() => document.querySelector(".tablet-arc").getAttribute("aria-label").includes("first replica"));
  assert.equal(await page.$("#tablet .chip.leader"), null);
  assert.equal(await page.$("[data-action='Change leader']"), null);
  await page.click("#tables label:last-child");
  await page.waitForSelector("#tablet .chip.leader");
});

await test("the driver learns all tablets, and then 95 of 100 requests reach the owning shard", async () => {
  await load(6);
  await page.waitForFunction(() => document.querySelector("#ring .big").textContent === "16/16");
  await page.waitForTimeout(3000);
  const before = (await state()).total;
  await page.waitForTimeout(3000);
  const after = (await state()).total;
  const [requests, right] = ["requests", "at_owner_shard"].map((name) => after[name] - before[name]);
  console.log(`        ${right} of ${requests} requests at the owning shard`);
  assert.ok(requests > 300, `${requests} requests in 3 s`);
  assert.ok(right >= requests * 0.95);
});

await test("a moved tablet is learned", async () => {
  await press("Move tablet");
  await logged(/Tablet 0 of bank\.accounts moved from/);
  await logged(/The driver has learned tablet 0 of bank\.accounts: \d+ requests? went astray/);
  await page.waitForSelector("#tablet .verdict.same");
});

await test("a new leader is learned, chosen by the keyboard", async () => {
  await page.focus(".tablet-arc[tabindex='0']");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelector("#tablet h3").textContent === "Tablet 1");
  const before = await text("#tablet .chip.leader");
  await press("Change leader");
  await logged(/The driver has learned tablet 1 of bank\.accounts/);
  assert.notEqual(await text("#tablet .chip.leader"), before);
});

await test("a split tablet is two, a merged one is one", async () => {
  await press("Split");
  await page.waitForFunction(() => document.querySelectorAll(".tablet-arc").length === 17);
  await press("Merge");
  await page.waitForFunction(() => document.querySelectorAll(".tablet-arc").length === 16);
});

await test("a node dies and comes back, and the requests go on", async () => {
  const others = async () => (await state()).nodes.filter((node) => node.alive).reduce((sum, node) => sum + node.requests, 0);
  await page.click("[aria-label='Kill node 2']");
  await page.waitForSelector(".node.down");
  const before = await others();
  await page.waitForTimeout(1500);
  assert.ok((await others()) > before + 100);
  await page.click("[aria-label='Start node 2']");
  await page.waitForFunction(() => document.querySelectorAll(".shard .links i").length >= 12, undefined, { timeout: 20_000 });
});

await test("nothing stands out of a narrow page, light or dark", async () => {
  await load(4);
  await page.waitForTimeout(3000);
  await shoot(page, "dark-1280");
  await page.click("#theme");
  assert.equal(await page.evaluate(() => document.documentElement.style.colorScheme), "light");
  await page.waitForTimeout(600);
  await shoot(page, "light-1280");
  const narrow = await open({ width: 390, height: 844 });
  await narrow.waitForSelector("#rows tbody tr");
  assert.equal(await narrow.evaluate(() => document.documentElement.scrollWidth), 390);
  await narrow.screenshot({ path: join(folder, "dark-390.png"), fullPage: true });
  await narrow.close();
});

await test("whoever wants no motion gets none", async () => {
  const calm = await open({ reducedMotion: "reduce" });
  await calm.waitForFunction(() => Number(document.querySelector(".shard .count").textContent.match(/\d+/)[0]) > 5);
  await calm.waitForTimeout(1200);
  assert.equal(await calm.evaluate(() => document.getAnimations().length), 0);
  await calm.close();
});

await test("every control has a name", async () => {
  const nameless = await page.$$eval("button, input, select, textarea, [role=button]", (controls) => controls.filter((control) =>
    !(control.getAttribute("aria-label") || control.textContent.trim() || control.labels?.length)).map((control) => control.outerHTML));
  assert.deepEqual(nameless, []);
});

await test("the local server is for this page alone", async () => {
  const ask = (method, path, headers, body) => new Promise((resolve, reject) => {
    request(new URL(path, server.url), { method, headers }, (response) => resolve(response.resume().statusCode)).on("error", reject).end(body);
  });
  const kill = JSON.stringify({ cmd: "kill", node: 0 });
  const origin = server.url.slice(0, -1);
  assert.equal(await ask("GET", "/state", { host: "evil.example" }), 403);
  assert.equal(await ask("POST", "/control", {}, kill), 403);
  assert.equal(await ask("POST", "/control", { origin: "http://evil.example" }, kill), 403);
  assert.equal(await ask("GET", "/messina/..%2f..%2fCargo.toml", {}), 404);
  assert.equal(await ask("POST", "/control", { origin }, JSON.stringify({ cmd: "start", node: 0 })), 200);
  assert.ok((await state()).nodes.every((node) => node.alive));
});

await test("the page complained of nothing", () => assert.deepEqual(complaints, []));

await browser.close();
await test("the command ends by an interrupt", async () => assert.equal(await server.stop(), 0));
console.log(`browser: ${passed} passed, ${failed} failed; screenshots in ${folder}`);
process.exit(failed === 0 ? 0 : 1);

/** The example, built and started on a free port. */
async function start() {
  const build = ["build", "--quiet", "--package", "messina-browser-example", "--message-format=json"];
  const lines = execFileSync("cargo", build, { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 26 }).trim().split("\n");
  const built = lines.map((line) => JSON.parse(line)).find((line) => line.executable && line.target.name === "messina-browser-example");
  const child = spawn(built.executable, ["--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /http:\S+/.exec(line)?.[0];
    if (url) return { url, stop: () => (child.kill("SIGINT"), exited.then(([code]) => code)) };
    console.log(line);
  }
  throw new Error("the example did not start");
}
