// The Worker in Miniflare and in workerd, by TCP and through the relay: `node test.mjs`.

import assert from "node:assert/strict";
import { bundle, ensure } from "./bundle.mjs";
import * as hosts from "./hosts.mjs";
import { servers } from "./servers.mjs";

ensure();
const built = await bundle();
let passed = 0;
const failures = [];

for (const isRelayed of [false, true]) {
  const { variables, counted, stop } = await servers(isRelayed);
  try {
    for (const name of ["miniflare", "workerd"]) {
      const where = `${name}, ${isRelayed ? "through the relay" : "by TCP"}`;
      const host = await hosts[name](built, variables);
      try {
        for (const [what, check] of Object.entries(CHECKS())) {
          try {
            await check(host.url, counted);
            passed++;
            console.log(`ok      ${where}: ${what}`);
          } catch (error) {
            failures.push(where);
            console.log(`FAILED  ${where}: ${what}\n${error.stack}`);
          }
        }
      } finally {
        await host.stop();
      }
    }
  } finally {
    await stop();
  }
}
console.log(`edge-worker: ${passed} passed, ${failures.length} failed`);
process.exit(failures.length === 0 ? 0 : 1);

/** What was counted when the pool of the Durable Object has filled. */
async function settled(counted) {
  let now = await counted();
  for (let tries = 0; tries < 20; tries++) {
    const before = now;
    await new Promise((resolve) => setTimeout(resolve, 300));
    now = await counted();
    if (now.connections === before.connections) break;
  }
  return now;
}

function CHECKS() {
  const put = (url, id, body) => fetch(`${url}/items/${id}`, { method: "PUT", body: JSON.stringify(body) });
  const items = {
    async "an item that was put is got"(url) {
      const name = `näher „${Math.random()}“`;
      const answer = await put(url, "a%2Fb", { name, stock: 3 });
      assert.equal(answer.status, 204, await answer.text());
      const got = await fetch(`${url}/items/a%2Fb`);
      const { updated, ...rest } = await got.json();
      assert.deepEqual(rest, { id: "a/b", name, stock: 3 });
      assert.ok(Math.abs(new Date(updated) - Date.now()) < 60_000, updated);
      assert.match(got.headers.get("x-cql-node"), /^127\.0\.0\.[123]:\d+$/);
      assert.match(got.headers.get("x-cql-shard"), /^[0-3]$/);
    },
    async "an item that is not there is 404, nonsense is 400 and 405"(url) {
      const missing = await fetch(`${url}/items/none`);
      assert.deepEqual([missing.status, (await missing.json()).error.message], [404, "no item none"]);
      assert.equal((await put(url, "x", { stock: 1 })).status, 400);
      assert.equal((await put(url, "x", { name: "x", stock: 2 ** 40 })).status, 400);
      assert.equal((await fetch(`${url}/items`, { method: "DELETE" })).status, 405);
      assert.equal((await fetch(`${url}/items?cursor=nonsense!`)).status, 400);
    },
    async "pages follow each other by their cursor"(url) {
      const ids = Array.from({ length: 25 }, (_, at) => `page-${at}`);
      await Promise.all(ids.map((id) => put(url, id, { name: id })));
      const found = [];
      let [cursor, pages] = [null, 0];
      do {
        const next = cursor ? `&cursor=${encodeURIComponent(cursor)}` : "";
        const page = await (await fetch(`${url}/items?limit=7${next}`)).json();
        found.push(...page.items.map(({ id }) => id).filter((id) => id.startsWith("page-")));
        cursor = page.cursor;
        pages++;
      } while (cursor !== null);
      assert.deepEqual(found.sort(), ids.sort());
      assert.ok(pages >= 4, `${pages} pages`);
    },
  };
  const pool = Object.entries(items).map(([what, check]) => [`${what}, in the Durable Object`, (url, counted) => check(`${url}/pool`, counted)]);
  return {
    ...items,
    ...Object.fromEntries(pool),
    async "a request that begins with what was learned prepares and reads nothing anew"(url, counted) {
      await fetch(`${url}/items/x`);
      const before = await settled(counted);
      for (let at = 0; at < 5; at++) assert.equal((await fetch(`${url}/items/none`)).status, 404);
      const { connections, ...rest } = await counted();
      assert.deepEqual(rest, { prepares: before.prepares, queries: before.queries });
      assert.equal(connections, before.connections + 5);
    },
    async "the Durable Object keeps its connections"(url, counted) {
      await fetch(`${url}/pool/items/x`);
      const before = await settled(counted);
      for (let at = 0; at < 20; at++) assert.equal((await fetch(`${url}/pool/items/none`)).status, 404);
      assert.deepEqual(await counted(), before);
    },
    async "forty requests at once, each with its own answer"(url) {
      const keys = Array.from({ length: 40 }, (_, at) => at);
      await Promise.all(keys.map((at) => put(url, `many-${at}`, { name: `item ${at}`, stock: at })));
      const got = await Promise.all(keys.map(async (at) => (await fetch(`${url}/items/many-${at}`)).json()));
      assert.deepEqual(got.map(({ stock }) => stock), keys);
    },
  };
}
