// The package as it ships (dist/), against a simulated cluster over real sockets.
//
// `node tests/run.mjs`; the program that serves the cluster is that of MESSINA_SERVE, or is built.
// Prints the sizes, and fails above the budget of size-budget.json, which only goes down.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { CqlError, Decimal, Duration, LocalDate, LocalTime, connect } from "messina-cql";
import { Module, Shell, Types, sockets } from "../dist/internals.js";
import { serve } from "./cluster.mjs";

const file = (path) => readFileSync(new URL(path, import.meta.url));
const compiled = new WebAssembly.Module(file("../dist/messina.wasm"));
const long = { timeout: 60_000 };
const tcp = sockets({});

let cluster;
before(async () => {
  cluster = await serve();
  const db = await connect({ contactPoints: cluster.contact });
  await db.execute("CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}");
  await db.execute("CREATE TABLE shop.item (k int PRIMARY KEY, b bigint, t text, bl blob, u uuid, o boolean, d double)");
  await db.close();
}, long);
after(() => cluster.stop());

/** Bytes of the main entry with its chunks, minified and packed. */
const SHELL_MAX = 17 << 10;

/** A file and the chunks that it imports. */
function loaded(path) {
  const code = file(path);
  const chunks = [...`${code}`.matchAll(/from"(\.\/chunk-[^"]+)"/g)].map(([, chunk]) => chunk);
  return Buffer.concat([code, ...chunks.map((chunk) => loaded(`${path.slice(0, path.lastIndexOf("/"))}/${chunk}`))]);
}

/** @param {object} [options] */
const open = (options) => connect({ contactPoints: [cluster.contact], routing: "full", ...options });

/** Sockets that pass on what came in pieces of `length` bytes. */
const splitting = (length) => (host, port, events) =>
  tcp(host, port, {
    ...events,
    data: (bytes) => {
      for (let at = 0; at < bytes.length; at += length) events.data(bytes.subarray(at, at + length));
    },
  });

/** `await using`, which Node 20 does not parse. */
async function using_(db, use) {
  try {
    await use(db);
  } finally {
    await db[Symbol.asyncDispose]();
  }
}

const rejects = (promise, expected) =>
  assert.rejects(promise, (error) => {
    assert.ok(error instanceof CqlError || error.name === "CqlError", `${error}`);
    for (const [fact, value] of Object.entries(expected)) {
      if (value instanceof RegExp) assert.match(error[fact], value);
      else assert.equal(error[fact], value, `${fact} of ${error}`);
    }
    return true;
  });

test("a prepared SELECT returns the row", long, async () => {
  const db = await open();
  const row = {
    k: 1, b: 2n ** 62n, t: "näher", bl: Uint8Array.of(0, 255), u: "00112233-4455-6677-8899-aabbccddeeff", o: true, d: -0.5,
  };
  const insert = await db.prepare("INSERT INTO shop.item (k, b, t, bl, u, o, d) VALUES (?, ?, ?, ?, ?, ?, ?)");
  assert.deepEqual(insert.markers.map(({ type }) => type), ["int", "bigint", "text", "blob", "uuid", "boolean", "double"]);
  assert.equal((await insert.run(row)).length, 0);
  const select = await db.prepare("SELECT k, b, t, bl, u, o, d FROM shop.item WHERE k = ?");
  const result = await select.run([1]);
  assert.deepEqual(result.rows(), [row]);
  assert.deepEqual([result.length, result.pagingState, result.column("b")], [1, undefined, BigInt64Array.of(2n ** 62n)]);
  assert.deepEqual((await select.run([2])).rows(), []);
  await db.close();
});

test("every type goes in and comes out as it was", long, async () => {
  await using_(await open({ keyspace: "shop" }), async (db) => {
    await db.execute('CREATE TYPE address (street text, "zip code" int, tags frozen<set<text>>)');
    const columns = {
      a: ["ascii", "plain"], b: ["varint", -(10n ** 30n)], c: ["decimal", Decimal.parse("-1.50")], d: ["date", LocalDate.parse("2026-11-30")],
      e: ["time", LocalTime.parse("12:34:56.000000789")], f: ["duration", Duration.parse("1mo2d3ns")], g: ["inet", "2001:db8::1"],
      h: ["timestamp", new Date(1_700_000_000_123)], i: ["timeuuid", "d2177dd0-eaa2-11de-a572-001b779c76e3"], j: ["smallint", -2],
      l: ["tinyint", 7], m: ["float", 0.5], n: ["list<int>", [1, 2]], o: ["set<text>", new Set(["x", "y"])],
      q: ["map<text, frozen<list<bigint>>>", new Map([["k", [1n, 2n]]])], r: ["tuple<int, text>", [1, null]],
      s: ["frozen<address>", { street: "s", "zip code": 1, tags: new Set(["t"]) }],
      t: ["list<frozen<address>>", [{ street: "u", "zip code": null, tags: null }]], u: ["vector<float, 3>", Float32Array.of(1, 2, 3)],
    };
    const names = Object.keys(columns);
    await db.execute(`CREATE TABLE every (k int PRIMARY KEY, ${names.map((name) => `${name} ${columns[name][0]}`).join(", ")})`);
    const values = Object.fromEntries(names.map((name) => [name, columns[name][1]]));
    const insert = await db.prepare(`INSERT INTO every (k, ${names}) VALUES (:k, ${names.map((name) => `:${name}`)})`);
    await insert.run({ k: 1, ...values });
    await insert.run({ k: 2, ...Object.fromEntries(names.map((name) => [name, null])) });
    const select = `SELECT ${names} FROM every WHERE k = ?`;
    const { columns: told, first } = await db.execute(select, [1]);
    assert.deepEqual(first, values);
    assert.equal(told.find(({ name }) => name === "t").type, "list<shop.address>");
    assert.ok(Object.values(await db.one`SELECT * FROM every WHERE k = ${2}`).filter((value) => value === null).length === names.length);
  });
});

test("null is null and undefined leaves the column as it is", long, async () => {
  const db = await open({ keyspace: "shop" });
  const put = (values) => db.execute("INSERT INTO item (k, t, d) VALUES (?, ?, ?)", values);
  const held = async () => (await db.execute("SELECT t, d FROM item WHERE k = ?", [5])).rows();
  await put([5, "kept", 1.5]);
  await put({ k: 5, d: null });
  assert.deepEqual(await held(), [{ t: "kept", d: null }]);
  await db.close();
});

test("pages follow each other by their paging state", long, async () => {
  const db = await open({ keyspace: "shop" });
  await db.execute("CREATE TABLE page (p int, c int, PRIMARY KEY (p, c))");
  const insert = await db.prepare("INSERT INTO page (p, c) VALUES (?, ?)");
  await Promise.all(Array.from({ length: 25 }, (_, c) => insert.run([1, c])));
  const select = await db.prepare("SELECT c FROM page WHERE p = ?");
  const found = [];
  let pagingState;
  do {
    const page = await select.run([1], { pageSize: 10, pagingState });
    found.push(...page.column("c"));
    pagingState = page.pagingState;
  } while (pagingState);
  assert.deepEqual(found, Array.from({ length: 25 }, (_, c) => c));
  await db.close();
});

test("templates bind, and their pages and rows can be walked", long, async () => {
  await using_(await open({ keyspace: "shop" }), async (db) => {
    await db.execute("CREATE TABLE walk (p int, c int, t text, PRIMARY KEY (p, c))");
    for (let c = 0; c < 25; c++) await db.query`INSERT INTO walk (p, c, t) VALUES (${1}, ${c}, ${`'${c}`})`;
    const query = db.query`SELECT c, t FROM walk WHERE p = ${1}`;
    const lengths = [];
    for await (const page of query.pages(10)) lengths.push(page.length);
    assert.deepEqual(lengths, [10, 10, 5]);
    const found = [];
    for await (const { c, t } of query.with({ pageSize: 7 })) found.push([c, t]);
    assert.deepEqual(found, Array.from({ length: 25 }, (_, c) => [c, `'${c}`]));
    assert.deepEqual(await query.one(), { c: 0, t: "'0" });
    assert.equal(await db.one`SELECT c FROM walk WHERE p = ${2}`, null);
    assert.deepEqual((await query.column("c")).constructor, Int32Array);
    const statement = await db.prepare("SELECT c FROM walk WHERE p = ?");
    assert.deepEqual([...(await statement.column("c", [1], { pageSize: 3 }))], [0, 1, 2]);
    assert.deepEqual(await statement.one({ p: 1 }), { c: 0 });
    await rejects(statement.run({ q: 1 }), { kind: "encode", message: /no marker is named q/ });
  });
});

for (const length of [1, 3, 7, 8, 9, 10, 11, 4095]) {
  test(`bytes that come in pieces of ${length} make the same rows`, long, async () => {
    const db = await open({ sockets: splitting(length) });
    await db.execute("INSERT INTO shop.item (k, t) VALUES (?, ?)", [length, "x".repeat(5000)]);
    const result = await db.execute("SELECT t FROM shop.item WHERE k = ?", [length]);
    assert.deepEqual(result.column("t"), ["x".repeat(5000)]);
    await db.close();
  });
}

test("a thousand requests at once, each with its own answer", long, async () => {
  const db = await open({ keyspace: "shop" });
  const insert = await db.prepare("INSERT INTO item (k, b) VALUES (?, ?)");
  const select = await db.prepare("SELECT b FROM item WHERE k = ?");
  const keys = Array.from({ length: 1000 }, (_, i) => 10_000 + i);
  await Promise.all(keys.map((k) => insert.run([k, k * k])));
  const results = await Promise.all(keys.map((k) => select.run([k])));
  assert.deepEqual(results.map((result) => result.value(0, 0)), keys.map((k) => BigInt(k * k)));
  await db.close();
});

test("more requests at once than a connection and its queue take are refused at once, and no other", long, async () => {
  const db = await connect({ contactPoints: cluster.contact });
  const ask = () => db.execute("SELECT key FROM system.local");
  const told = await Promise.allSettled(Array.from({ length: 2048 + 4096 + 10 }, ask));
  const refused = told.filter(({ status }) => status === "rejected").map(({ reason }) => reason);
  assert.deepEqual(refused.map(({ kind, retryable }) => [kind, retryable]), Array(10).fill(["limit", true]));
  assert.equal((await ask()).length, 1);
  await db.close();
});

test("results say where they come from, and conditional ones whether they were applied", long, async () => {
  const db = await open({ keyspace: "shop" });
  const insert = await db.prepare("INSERT INTO item (k, t) VALUES (?, ?) IF NOT EXISTS");
  assert.deepEqual((await insert.run([70, "a"])).applied, true);
  const second = await insert.run([70, "b"], { serialConsistency: "LOCAL_SERIAL", consistency: "QUORUM" });
  assert.deepEqual([second.applied, second.column("t")], [false, ["a"]]);
  const { nodes } = db.cluster();
  assert.ok(nodes.some(({ address }) => address === second.host), `${second.host}`);
  assert.ok(second.shard < 2, `${second.shard}`);
  assert.equal((await db.execute("SELECT k FROM item WHERE k = 70")).applied, undefined);
  await db.close();
});

test("a batch of prepared statements and texts, with a timestamp", long, async () => {
  const db = await open({ keyspace: "shop" });
  const insert = await db.prepare("INSERT INTO item (k, t) VALUES (?, ?)");
  const timestamp = 2n ** 60n;
  await db.batch([[insert, [80, "odd"]], "INSERT INTO item (k, t) VALUES (81, 'text')", [insert, { k: 82, t: null }]], { timestamp, type: "unlogged" });
  await insert.run([80, "older"]);
  const held = async (k) => (await db.execute("SELECT t FROM item WHERE k = ?", [k])).column("t");
  assert.deepEqual([await held(80), await held(81)], [["odd"], ["text"]]);
  await rejects(db.batch([[insert, [1]]]), { kind: "encode" });
  await rejects(db.batch(["SELEC"]), { kind: "syntax", retryable: false, attempts: 1 });
  await rejects(db.execute("SELECT k FROM item", [], { consistency: "SOME" }), { kind: "usage" });
  await db.close();
});

test("the picture of the cluster: nodes, shards, tablets, where requests went", long, async () => {
  const db = await open({ keyspace: "shop" });
  const select = await db.prepare("SELECT k FROM item WHERE k = ?");
  for (let k = 0; k < 64; k++) await select.run([k]);
  const { nodes, tables, reached, prepared } = db.cluster();
  assert.deepEqual(nodes.map(({ shards, isUp, dataCenter }) => [shards, isUp, dataCenter]), Array(3).fill([2, true, nodes[0].dataCenter]));
  assert.match(nodes[0].hostId, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  const answered = nodes.flatMap(({ requests }) => requests).reduce((sum, { count }) => sum + count, 0);
  assert.ok(answered >= 64 && reached > 0 && prepared >= 1, `${answered} ${reached} ${prepared}`);
  const { tablets } = tables.find(({ table }) => table === "item");
  assert.ok(tablets.length > 0);
  for (const { first, last, version, replicas } of tablets) {
    assert.ok(first < last && typeof version === "bigint");
    assert.deepEqual(replicas.map(({ node, shard }) => [typeof node, shard < 2]), Array(3).fill(["number", true]));
  }
  const blob = db.warmStart();
  assert.ok(blob.length > 0 && db.warmStart(10).length === 0);
  await db.close();
  const warm = await open({ keyspace: "shop", warmStart: blob });
  assert.equal((await warm.execute("SELECT k FROM item WHERE k = ?", [1])).length, 1);
  await warm.close();
});

test("an aborted request rejects at once and harms no other", long, async () => {
  const db = await open();
  const select = await db.prepare("SELECT k FROM shop.item WHERE k = ?");
  await rejects(select.run([1], { signal: AbortSignal.abort() }), { kind: "aborted", applied: false, name: "AbortError" });
  const controller = new AbortController();
  const [given_up, kept] = [select.run([1], controller), select.run([1])];
  controller.abort(new Error("enough"));
  await assert.rejects(given_up, (error) => error.kind === "aborted" && error.cause.message === "enough");
  assert.equal((await kept).length, 1);
  assert.equal((await select.run([1])).length, 1);
  await db.close();
});

test("a close that is given up ends what is under way, and leaves no rejection to nobody", long, async () => {
  const nobody = [];
  const listener = (error) => nobody.push(error);
  process.on("unhandledRejection", listener);
  const db = await open();
  const asked = rejects(db.execute("SELECT key FROM system.local"), { kind: "usage", message: "the database is closed" });
  await rejects(db.close({ signal: AbortSignal.abort() }), { kind: "aborted" });
  await asked;
  await new Promise((resolve) => setTimeout(resolve, 10));
  process.off("unhandledRejection", listener);
  assert.deepEqual(nobody, []);
});

test("errors say who is at fault", long, async () => {
  const db = await open();
  const insert = await db.prepare("INSERT INTO shop.item (k, u) VALUES (?, ?)");
  await rejects(db.execute("SELEC 1"), { kind: "syntax", code: 0x2000, applied: false });
  await rejects(db.execute("SELECT k FROM nowhere.item"), { kind: "server", code: 0x2200 });
  await rejects(insert.run([1]), { kind: "encode", message: "1 values for 2 markers" });
  await rejects(insert.run(["1", null]), { kind: "encode", message: 'value 0 (k int): int takes integers from -2147483648 to 2147483647, not the string "1"' });
  await rejects(insert.run([2 ** 31, null]), { kind: "encode" });
  await rejects(insert.run([1, "no uuid"]), { kind: "encode" });
  await db.close();
  await rejects(insert.run([1, null]), { kind: "usage" });
  await rejects(connect({ contactPoints: "a b" }), { kind: "config" });
  await rejects(connect(), { kind: "config", message: /contact point/ });
  await rejects(open({ keyspce: "shop" }), { kind: "config", message: /keyspce/ });
});

test("the stack of an error names who asked", long, async () => {
  const db = await open();
  const asking = async () => { await db.execute("SELECT nothing FROM shop.item WHERE k = ?", [1]); };
  await assert.rejects(asking, ({ stack }) => /CqlError: .*\n[^]*at async asking .*run\.mjs/.test(stack));
  const statement = await db.prepare("SELECT k FROM shop.item WHERE k = ?");
  const controller = new AbortController();
  const running = async () => {
    const run = statement.run([1], controller);
    queueMicrotask(() => controller.abort());
    await run;
  };
  await assert.rejects(running, ({ stack }) => /at async running /.test(stack));
  await db.close();
});

test("a wrong password is an error of kind auth, and a right one is none", long, async () => {
  const guarded = await serve("alice", "secret");
  const login = (user, password) => connect({ contactPoints: guarded.contact, user, password });
  await (await login("alice", "secret")).close();
  // The first request confirms the login.
  const asked = async (...as) => (await login(...as)).execute("SELECT key FROM system.local");
  await rejects(asked("alice", "wrong"), { kind: "auth", code: 0x0100, applied: false });
  await rejects(asked(), { kind: "auth" });
  await guarded.stop();
});

test("a port where nobody listens, and one where nobody answers", long, async () => {
  const silent = createServer((socket) => socket.on("error", () => {}).resume()).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address();
  const started = performance.now();
  await rejects(connect({ contactPoints: `127.0.0.1:${port}`, connectTimeout: 300 }), { kind: /transport|timeout/ });
  assert.ok(performance.now() - started < 3000);
  silent.close();
  await once(silent, "close");
  await rejects(connect({ contactPoints: `127.0.0.1:${port}`, connectTimeout: 300 }), { kind: "transport", message: /refused/ });
});

// The module that ships has no texts: its panic is a trap.
const PANIC = /unreachable|panicked|memory|capacity/;

test("a panic rejects every pending request", long, async () => {
  const shell = new Shell(compiled, new Types(), tcp);
  const pending = shell.request((module) => module.start({ contactPoints: "127.0.0.1:1" }));
  // No memory for that many bytes: a panic of the module as it ships.
  const failed = shell.request((module) => module.call("input", 2 ** 31 - 1));
  await rejects(failed, { kind: "bug", applied: true, message: PANIC });
  await rejects(pending, { kind: "bug", message: PANIC });
  await rejects(shell.request((module) => module.call("close")), { kind: "bug" });
  assert.throws(() => new Module(compiled, new Types()).call("input", 2 ** 32 - 1), { kind: "bug" });
});

test("a value that no frame holds is refused before anything is sent", long, async () => {
  await using_(await open(), async (db) => {
    const insert = await db.prepare("INSERT INTO shop.item (k, bl) VALUES (?, ?)");
    await rejects(insert.run([1300, new Uint8Array(300 * 2 ** 20)]), { kind: "encode", applied: false });
    // The connection is in step, and nothing was written.
    await insert.run([1301, new Uint8Array(3)]);
    assert.equal((await db.execute("SELECT bl FROM shop.item WHERE k = 1300")).length, 0);
    assert.equal((await db.execute("SELECT bl FROM shop.item WHERE k = 1301")).first.bl.length, 3);
  });
});

test("a process ends by itself after close", long, async () => {
  const code = `import { connect } from ${JSON.stringify(new URL("../dist/node/index.js", import.meta.url).href)};
    const db = await connect({ contactPoints: ${JSON.stringify(cluster.contact)} });
    const ran = db.execute("SELECT k FROM shop.item WHERE k = ?", [1]);
    await ran; await db.close(); console.log("closed");`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  const [chunk] = await once(child.stdout, "data");
  const closed = performance.now();
  const [exit] = await once(child, "exit");
  assert.deepEqual([`${chunk}`, exit], ["closed\n", 0]);
  assert.ok(performance.now() - closed < 2000, "something was left that kept the process");
});

test("modules and shells stay within their budget", () => {
  const budget = JSON.parse(`${file("../size-budget.json")}`);
  const packed = (bytes) => gzipSync(bytes, { level: 9 }).length;
  const sums = { gzip: ["messina.wasm", "node/index.js"], lite: ["messina-lite.wasm", "node/lite.js"] };
  for (const [name, [wasmFile, shellFile]] of Object.entries(sums)) {
    const [wasm, shell] = [file(`../dist/${wasmFile}`), loaded(`../dist/${shellFile}`)];
    const sum = packed(wasm) + packed(shell);
    console.log(`${wasmFile} ${wasm.length} B, gzip ${packed(wasm)} B; shell ${shell.length} B, gzip ${packed(shell)} B; sum ${sum} B`);
    if (process.env.MESSINA_SIZE === "any") continue;
    assert.ok(sum <= budget[name], `${sum} bytes of ${budget[name]}`);
    assert.ok(packed(shell) <= SHELL_MAX, `the shell: ${packed(shell)} bytes of ${SHELL_MAX}`);
  }
});

test("the lite entry asks as the main one does, and says what it lacks", long, async () => {
  const lite = await import("messina-cql/lite");
  const db = await lite.connect({ contactPoints: [cluster.contact], keyspace: "shop" });
  await db.query`INSERT INTO item (k, t) VALUES (${500}, ${"lite"})`;
  assert.deepEqual(await db.one`SELECT k, t FROM item WHERE k = ${500}`, { k: 500, t: "lite" });
  assert.equal(db.cluster().nodes.length, 0);
  const again = await lite.connect({ contactPoints: [cluster.contact], keyspace: "shop", warmStart: db.warmStart() });
  assert.deepEqual(await again.one`SELECT t FROM item WHERE k = ${500}`, { t: "lite" });
  await again.close();
  await db.close();
  await rejects(lite.connect({ contactPoints: [cluster.contact], routing: "full" }), { kind: "config", message: /routing/ });
});
