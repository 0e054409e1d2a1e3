// One program, run with cassandra-driver and with `messina-cql/compat`: both have to say the same.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import cassandra from "cassandra-driver";
import * as compat from "messina-cql/compat";
import { serve } from "../cluster.mjs";

const long = { timeout: 60_000 };
let cluster;
before(async () => { cluster = await serve(); }, long);
after(() => cluster.stop());

const open = (driver, options) =>
  new driver.Client({ contactPoints: [cluster.contact], localDataCenter: "dc1", ...options });

/** What a value is, for both drivers alike: the name of its class and its text. */
function shown(value) {
  if (value === null || value === undefined || typeof value !== "object") return typeof value === "bigint" ? `${value}n` : value;
  if (Array.isArray(value)) return value.map(shown);
  if (value instanceof Uint8Array) return `${value.constructor.name} ${Buffer.from(value).toString("hex")}`;
  if (value instanceof Date) return value.toISOString();
  if (Object.getPrototypeOf(value) === Object.prototype) return Object.fromEntries(Object.entries(value).map(([name, held]) => [name, shown(held)]));
  if (value instanceof Map) return { map: [...value].map(shown) };
  if (value instanceof Set) return { set: [...value].map(shown) };
  return `${value.constructor.name} ${value} ${JSON.stringify(value)}`;
}

async function failure(promise) {
  try {
    await promise;
    return "none";
  } catch (error) {
    return { name: error.name, code: error.code, isError: error instanceof Error };
  }
}

/** The program. */
async function program(driver, keyspace) {
  const { types } = driver;
  const said = [];
  const say = (...what) => said.push(what);
  const client = open(driver);
  await client.connect();
  say("connected", client.connected === undefined ? true : client.connected, client.hosts.length);
  const ddl = await client.execute(`CREATE KEYSPACE ${keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}`);
  say("ddl", ddl.rows, ddl.first(), ddl.pageState, ddl.wasApplied(), ddl.columns);
  await client.execute(`CREATE TYPE ${keyspace}.address (street text, zip int)`);
  await client.execute(`CREATE TABLE ${keyspace}.every (k int PRIMARY KEY, a ascii, b bigint, c blob, d boolean, e decimal, f double, g float, h inet,
    i text, j timestamp, l timeuuid, m uuid, n varint, o date, p time, q smallint, r tinyint, s list<int>, t set<text>, u map<text, int>,
    v frozen<tuple<int, text>>, w frozen<address>, x duration, y map<int, bigint>)`);
  const columns = "k, a, b, c, d, e, f, g, h, i, j, l, m, n, o, p, q, r, s, t, u, v, w, x, y";
  const insert = `INSERT INTO ${keyspace}.every (${columns}) VALUES (${columns.split(", ").map(() => "?").join(", ")})`;
  const values = [
    1, "plain", types.Long.fromString("-9007199254740993"), Buffer.from([0, 255]), true, types.BigDecimal.fromString("-12.50"), 0.1, 0.5,
    types.InetAddress.fromString("10.1.2.3"), "näher", new Date(1_700_000_000_123), types.TimeUuid.fromString("d2177dd0-eaa2-11de-a572-001b779c76e3"),
    types.Uuid.fromString("00112233-4455-6677-8899-aabbccddeeff"), types.Integer.fromString("-123456789012345678901234567890"),
    types.LocalDate.fromString("2026-11-30"), types.LocalTime.fromString("12:34:56.789"), -2, 7, [1, 2], ["x", "y"], { a: 1, b: 2 },
    new types.Tuple(1, "one"), { street: "s", zip: 5 }, types.Duration.fromString("1mo2d3h"), { 5: types.Long.fromNumber(6) },
  ];
  await client.execute(insert, values, { prepare: true, isIdempotent: true, consistency: types.consistencies.quorum });
  const select = `SELECT ${columns} FROM ${keyspace}.every WHERE k = ?`;
  const result = await client.execute(select, [1], { prepare: true });
  say("row", result.rowLength, shown(Object.fromEntries(result.first().keys().map((name) => [name, result.first()[name]]))));
  say("row's own", result.first().get("i"), result.first().get(0), result.first().values().length, result.columns.map(({ name, type }) => [name, type.code === 13 ? 10 : type.code]));
  const row = result.first();
  say("classes", row.b instanceof types.Long, row.b.toNumber(), row.b.equals(types.Long.fromString("-9007199254740993")), row.m instanceof types.Uuid,
    row.m.equals(types.Uuid.fromString("00112233-4455-6677-8899-aabbccddeeff")), row.l.getDate().toISOString(), row.v.get(1), row.v.length,
    row.o.year, row.p.hour, row.e.toNumber(), row.n.isNegative(), row.x.months, row.h.version);
  await client.execute(insert, [2, ...Array(24).fill(null)], { prepare: true });
  say("nulls", shown({ ...(await client.execute(select, [2], { prepare: true })).first() }));
  await client.execute(`INSERT INTO ${keyspace}.every (k, i) VALUES (?, ?)`, [1, types.unset], { prepare: true });
  say("unset keeps", (await client.execute(`SELECT i FROM ${keyspace}.every WHERE k = 1`)).first().i);
  await client.execute(`INSERT INTO ${keyspace}.every (k, i) VALUES (:k, :text)`, { k: 3, text: "named" }, { prepare: true });
  say("named", (await client.execute(`SELECT i FROM ${keyspace}.every WHERE k = ?`, [3], { prepare: true })).first().i);

  await client.execute(`CREATE TABLE ${keyspace}.many (p int, c int, PRIMARY KEY (p, c))`);
  const queries = Array.from({ length: 25 }, (_, c) => ({ query: `INSERT INTO ${keyspace}.many (p, c) VALUES (?, ?)`, params: [1, c] }));
  const batch = await client.batch(queries, { prepare: true, logged: false });
  say("batch", batch.rows, batch.wasApplied());
  const all = `SELECT c FROM ${keyspace}.many WHERE p = ?`;
  const options = { prepare: true, fetchSize: 10 };
  const first = await client.execute(all, [1], options);
  say("page", first.rowLength, typeof first.pageState, first.isPaged());
  const second = await client.execute(all, [1], { ...options, pageState: first.pageState });
  say("next page", second.rows.map((held) => held.c));
  const iterated = [];
  for await (const { c } of first) iterated.push(c);
  say("iterated", iterated, [...first].length);
  const each = await new Promise((resolve, reject) => {
    const rows = [];
    client.eachRow(all, [1], { ...options, autoPage: true }, (n, held) => rows.push([n, held.c]), (error, end) => (error ? reject(error) : resolve([rows, end.rowLength])));
  });
  say("eachRow", each);
  const paged = await new Promise((resolve, reject) => {
    const rows = [];
    client.eachRow(all, [1], options, (n, held) => rows.push([n, held.c]), (error, end) => {
      if (error) reject(error);
      else if (end.nextPage) end.nextPage();
      else resolve(rows);
    });
  });
  say("eachRow by page", paged);
  const streamed = [];
  for await (const { c } of client.stream(all, [1], options)) streamed.push(c);
  say("stream", streamed);
  const stream = client.stream(all, [1], options);
  const read = [];
  stream.on("readable", function () {
    for (let held = this.read(); held; held = this.read()) read.push(held.c);
  });
  await once(stream, "end");
  say("readable", read.length);
  say("callback", await new Promise((resolve) => client.execute(all, [1], { prepare: true }, (error, end) => resolve([error ?? null, end.rowLength]))));
  say("callback without options", await new Promise((resolve) => client.execute(`SELECT c FROM ${keyspace}.many`, (error, end) => resolve([error ?? null, end.rowLength]))));
  say("callback's error", await new Promise((resolve) => client.execute("SELEC", (error) => resolve([error.name, error.code]))));
  const lwt = `INSERT INTO ${keyspace}.many (p, c) VALUES (?, ?) IF NOT EXISTS`;
  say("applied", (await client.execute(lwt, [1, 1], { prepare: true })).wasApplied(), (await client.execute(lwt, [1, 99], { prepare: true })).wasApplied());
  say("syntax", await failure(client.execute("SELEC")));
  say("invalid", await failure(client.execute(`SELECT nothing FROM ${keyspace}.many`)));
  say("wrong type", await failure(client.execute(all, ["x"], { prepare: true })));
  say("codes", types.responseErrorCodes.syntaxError, types.consistencies.localQuorum, types.dataTypes.map);
  await client.shutdown();
  say("after the end", await failure(client.execute(all, [1], { prepare: true })));
  return said;
}

test("both drivers say the same", long, async () => {
  const expected = await program(cassandra, "theirs");
  const told = await program(compat, "ours");
  for (const [index, line] of expected.entries()) assert.deepEqual(told[index], line);
  assert.equal(told.length, expected.length);
});

test("a data centre that does not exist is refused, and the client can be shut down", long, async () => {
  const told = [];
  for (const driver of [cassandra, compat]) {
    const client = open(driver, { localDataCenter: "nowhere" });
    const said = [];
    for (const asked of [client.connect(), client.execute("SELECT key FROM system.local")]) {
      await asked.then(() => said.push("none"), ({ name, message, innerErrors }) => {
        const [inner] = Object.values(innerErrors);
        said.push([name, Object.keys(innerErrors), inner.name, inner.message, message.includes(inner.message)]);
      });
    }
    await client.shutdown();
    told.push(said);
  }
  assert.deepEqual(told[1], told[0]);
  assert.match(told[1][0][3], /'nowhere'.*\[dc1\]/);
});

test("bigints and Maps and Sets where they are asked for", long, async () => {
  const told = [];
  for (const driver of [cassandra, compat]) {
    const client = open(driver, { encoding: { useBigIntAsLong: true, useBigIntAsVarint: true, map: Map, set: Set } });
    await client.connect();
    const { rows } = await client.execute("SELECT b, n, t, u FROM theirs.every WHERE k = 1");
    told.push(shown({ ...rows[0] }));
    await client.shutdown();
  }
  assert.deepEqual(told[1], told[0]);
});

test("limits of 0 are none, and no consistency is made up", long, async () => {
  const client = open(compat, { socketOptions: { readTimeout: 0 } });
  const all = "SELECT key FROM system.local";
  assert.equal((await client.execute(all, [], { readTimeout: 0, fetchSize: 0 })).rowLength, 1);
  for (const consistency of [77, "quorum"]) {
    await assert.rejects(client.execute(all, [], { consistency }), { name: "ArgumentError", message: /^no consistency/ });
  }
  await client.shutdown();
});

test("what cannot be reached is a NoHostAvailableError in both", long, async () => {
  for (const driver of [cassandra, compat]) {
    const client = new driver.Client({ contactPoints: ["127.0.0.1:1"], localDataCenter: "dc1" });
    await assert.rejects(client.connect(), { name: "NoHostAvailableError" });
    await client.shutdown();
    assert.throws(() => new driver.Client({}), { name: "TypeError" });
  }
});
