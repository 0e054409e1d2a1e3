// Templates and pages, against a `run` that notes what it is asked.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { CqlError, Database, Query, pages, pagingBytes, urlText } from "../../dist/internals.js";

const database = new Database({ tell() {} }, undefined);

test("a template binds its values and keeps its text", () => {
  const name = "x'; DROP TABLE item; --";
  const query = database.query`SELECT * FROM item WHERE name = ${name} AND k = ${1}`;
  assert.deepEqual([query.text, query.values], ["SELECT * FROM item WHERE name = ? AND k = ?", [name, 1]]);
});

test("what is no template is refused with help", async () => {
  const forged = Object.assign(["SELECT 1"], { raw: ["SELECT 1"] });
  for (const call of [() => database.query("SELECT 1"), () => database.query(["SELECT 1"]), () => database.query(forged), () => database.query()]) {
    assert.throws(call, (error) => error instanceof CqlError && error.kind === "usage" && /db\.query`SELECT/.test(error.message));
  }
  await assert.rejects(database.one("SELECT 1"), { kind: "usage", message: /db\.one`/ });
  assert.throws(() => database.query`SELECT ${database.query`x`}`, { kind: "usage", message: /never splices/ });
});

test("a query runs once, when it is wanted", async () => {
  const ran = [];
  const run = async (...asked) => (ran.push(asked), { first: ran.length });
  const query = new Query(run, "SELECT", [], { timeout: 5 });
  assert.equal(ran.length, 0);
  assert.deepEqual([await query.one(), (await query).first, await query.one()], [1, 1, 1]);
  assert.equal((await query.with({ idempotent: true })).first, 2);
  assert.deepEqual(ran.map(([, , options]) => options), [{ timeout: 5 }, { timeout: 5, idempotent: true }]);
});

/** Pages 0 to `last`, and how many were asked for. */
function book(last) {
  const held = { asked: 0, aborted: 0 };
  held.run = async ({ pagingState, signal }) => {
    held.asked++;
    signal.addEventListener("abort", () => held.aborted++);
    await sleep(1);
    const number = pagingState === undefined ? 0 : Number(pagingState);
    return { number, pagingState: number < last ? String(number + 1) : undefined };
  };
  return held;
}

test("pages come in order, asked for ahead as far as it was said and no further", async () => {
  for (const prefetch of [0, 1, 3]) {
    const held = book(6);
    const found = [];
    for await (const page of pages(held.run, { prefetch })) {
      found.push(page.number);
      await sleep(15);
      assert.equal(held.asked, Math.min(page.number + 1 + prefetch, 7), `prefetch ${prefetch}, page ${page.number}`);
    }
    assert.deepEqual(found, [0, 1, 2, 3, 4, 5, 6]);
  }
});

test("leaving the loop gives up what is under way", async () => {
  const held = book(6);
  for await (const page of pages(held.run, { prefetch: 1 })) if (page.number === 1) break;
  assert.ok(held.aborted > 0);
  await sleep(10);
  assert.equal(held.asked, 3);
});

test("the error of a page comes when that page is wanted", async () => {
  const held = book(6);
  const run = (options) => (options.pagingState === "2" ? Promise.reject(new Error("gone")) : held.run(options));
  const found = [];
  await assert.rejects(async () => {
    for await (const page of pages(run, { prefetch: 3 })) found.push(page.number);
  }, /gone/);
  assert.deepEqual(found, [0, 1]);
  await assert.rejects(pages(run, { prefetch: 99 }).next(), { kind: "usage" });
});

test("paging states are text that survives a URL", () => {
  for (const bytes of [[], [0], [255, 254, 253], [62, 63, 64, 65], Array.from({ length: 256 }, (_, i) => i)]) {
    const text = urlText(Uint8Array.from(bytes));
    assert.match(text, /^[\w-]*$/);
    assert.deepEqual([...pagingBytes(text)], bytes);
  }
  for (const wrong of [5, "%", {}]) assert.throws(() => pagingBytes(wrong), { kind: "usage" });
});
