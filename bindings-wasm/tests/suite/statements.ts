// Asking: templates, texts, prepared statements, batches, pages, columns.

import { equal, ok, rejects, throws } from "./check.js";
import { table, type Place } from "./place.js";
import type { Test } from "./suite.js";

export const statements = ({ open, sim }: Place): Test[] => [
  {
    name: "a template binds its values and never joins them into the text",
    async run() {
      const db = await open();
      const name = await table(db, "k int PRIMARY KEY, t text");
      await db.execute(`INSERT INTO ${name} (k, t) VALUES (?, ?)`, [1, "'; DROP TABLE x"]);
      const found = await db.query`SELECT key FROM system.local WHERE key = ${"' OR 1"}`;
      equal(found.length, 0);
      equal(await db.one`SELECT key FROM system.local WHERE key = ${"no such"}`, null);
      equal((await db.execute(`SELECT t FROM ${name} WHERE k = ?`, [1])).first, { t: "'; DROP TABLE x" });
      throws(() => (db.query as any)("SELECT key FROM system.local"), { kind: "usage", message: /execute/ });
      await db.close();
    },
  },
  {
    name: "a prepared statement takes values by place and by name",
    async run() {
      const db = await open();
      const name = await table(db, "k int PRIMARY KEY, b bigint, t text");
      const insert = await db.prepare(`INSERT INTO ${name} (k, b, t) VALUES (?, ?, ?)`);
      equal(insert.markers.map(({ name, type }) => `${name} ${type}`), ["k int", "b bigint", "t text"]);
      await insert.run([1, 10n, "one"]);
      await insert.run({ k: 2, t: "two" });
      await insert.run({ k: 1, b: null });
      const select = await db.prepare(`SELECT k, b, t FROM ${name} WHERE k = ?`);
      equal((await select.run([1])).rows(), [{ k: 1, b: null, t: "one" }]);
      equal(await select.one([2]), { k: 2, b: null, t: "two" });
      equal(await select.one([3]), null);
      await db.close();
    },
  },
  {
    name: "rows, values and columns of a result say the same",
    async run() {
      const db = await open();
      const name = await table(db, "p int, c int, b bigint, d double, t text, PRIMARY KEY (p, c)");
      const insert = await db.prepare(`INSERT INTO ${name} (p, c, b, d, t) VALUES (1, ?, ?, ?, ?)`);
      await Promise.all(Array.from({ length: 100 }, (_, c) => insert.run([c, c * c, c / 2, `t${c}`])));
      const result = await db.execute(`SELECT c, b, d, t FROM ${name} WHERE p = 1`);
      equal(result.length, 100);
      equal(result.first, { c: 0, b: 0n, d: 0, t: "t0" });
      equal(result.row(7), { c: 7, b: 49n, d: 3.5, t: "t7" });
      equal(result.value(7, 1), 49n);
      equal([...result].length, 100);
      equal(result.column("c"), Int32Array.from({ length: 100 }, (_, c) => c));
      equal(result.column("b"), BigInt64Array.from({ length: 100 }, (_, c) => BigInt(c * c)));
      equal(result.column("d"), Float64Array.from({ length: 100 }, (_, c) => c / 2));
      equal(result.column("t"), Array.from({ length: 100 }, (_, c) => `t${c}`));
      throws(() => result.column("x"), { kind: "usage", message: /x/ });
      throws(() => result.row(100), { kind: "usage" });
      await db.close();
    },
  },
  {
    name: "pages follow each other, ahead of their use, and can be taken up later",
    async run() {
      const db = await open();
      const name = await table(db, "p int, c int, PRIMARY KEY (p, c)");
      const insert = await db.prepare(`INSERT INTO ${name} (p, c) VALUES (1, ?)`);
      await Promise.all(Array.from({ length: 95 }, (_, c) => insert.run([c])));
      const select = await db.prepare<unknown[], { c: number }>(`SELECT c FROM ${name} WHERE p = ?`);
      const all = Array.from({ length: 95 }, (_, c) => c);
      for (const prefetch of [0, 1, 3]) {
        const sizes: number[] = [];
        const found: number[] = [];
        for await (const page of select.pages([1], { pageSize: 10, prefetch })) {
          sizes.push(page.length);
          found.push(...page.rows().map(({ c }) => c));
        }
        equal(found, all, `rows with prefetch ${prefetch}`);
        equal(sizes.slice(0, 9), Array(9).fill(10));
      }
      const first = await select.run([1], { pageSize: 40 });
      ok(typeof first.pagingState === "string" && /^[\w-]+$/.test(first.pagingState), "an opaque text");
      const rest = await select.run([1], { pageSize: 100, pagingState: first.pagingState });
      equal([rest.length, rest.pagingState], [55, undefined]);
      await rejects(select.run([1], { pagingState: "\u0000 no" }), { kind: "usage" });
      await db.close();
    },
  },
  {
    name: "a batch applies all of its statements",
    async run() {
      const db = await open();
      const name = await table(db, "k int PRIMARY KEY, t text");
      const insert = await db.prepare(`INSERT INTO ${name} (k, t) VALUES (?, ?)`);
      await db.batch([[insert, [1, "a"]], [insert, { k: 2, t: "b" }], `INSERT INTO ${name} (k, t) VALUES (3, 'c')`]);
      const rows = (await db.execute<{ k: number; t: string }>(`SELECT k, t FROM ${name}`)).rows();
      equal(rows.map(({ k, t }) => `${k}${t}`).sort(), ["1a", "2b", "3c"]);
      await db.close();
    },
  },
  {
    name: "a conditional statement says whether it was applied",
    async run() {
      const db = await open();
      const name = await table(db, "k int PRIMARY KEY, v int");
      const insert = await db.prepare(`INSERT INTO ${name} (k, v) VALUES (?, ?) IF NOT EXISTS`);
      equal((await insert.run([1, 10])).applied, true);
      const second = await insert.run([1, 11]);
      equal(second.applied, false);
      equal(second.first?.v, 10);
      await db.close();
    },
  },
  {
    name: "a statement that the server has forgotten is prepared again",
    isSimulated: true,
    async run() {
      const db = await open();
      const name = await table(db, "k int PRIMARY KEY");
      const insert = await db.prepare(`INSERT INTO ${name} (k) VALUES (?)`);
      await insert.run([1]);
      await sim({ cmd: "forget_prepared" });
      await insert.run([2]);
      equal((await db.execute(`SELECT k FROM ${name}`)).length, 2);
      await db.close();
    },
  },
  {
    name: "a thousand requests at once, each with its own answer",
    async run() {
      const db = await open();
      const name = await table(db, "k int PRIMARY KEY, b bigint");
      const insert = await db.prepare(`INSERT INTO ${name} (k, b) VALUES (?, ?)`);
      const select = await db.prepare(`SELECT b FROM ${name} WHERE k = ?`);
      const keys = Array.from({ length: 1000 }, (_, k) => k);
      await Promise.all(keys.map((k) => insert.run([k, k * k])));
      const results = await Promise.all(keys.map((k) => select.run([k])));
      equal(results.map((result) => result.value(0, 0)), keys.map((k) => BigInt(k * k)));
      await db.close();
    },
  },
  {
    name: "values of megabytes come back as they went",
    async run() {
      const db = await open();
      const name = await table(db, "k int PRIMARY KEY, b blob");
      const insert = await db.prepare(`INSERT INTO ${name} (k, b) VALUES (?, ?)`);
      for (const length of [1 << 20, 3_000_001]) {
        const bytes = Uint8Array.from({ length }, (_, at) => (at * 31) ^ (at >> 8));
        await insert.run([length, bytes]);
        const found = (await db.execute(`SELECT b FROM ${name} WHERE k = ?`, [length])).value(0, 0) as Uint8Array;
        equal(found.length, length);
        ok(found.every((byte, at) => byte === bytes[at]), "other bytes");
      }
      await db.close();
    },
  },
];
