// Has the exchange that is recorded for the conformance tests, with cassandra-driver.
//
// The same statements and values as the harness's own `capture/exchange.rs`, so that the bytes of
// two drivers can be compared. By hand: start `messina-interop capture`, run this against its
// contact.
"use strict";

const cassandra = require("cassandra-driver");
const { types } = cassandra;

const columns = (
  "id c_ascii c_bigint c_blob c_boolean c_date c_decimal c_double c_duration c_float c_inet " +
  "c_smallint c_text c_time c_timestamp c_timeuuid c_tinyint c_uuid c_varint c_list c_set c_map " +
  "c_tuple c_place c_vector"
).split(" ");

const values = [
  1,
  "ascii",
  types.Long.fromInt(-2),
  Buffer.from([0, 0xff]),
  true,
  types.LocalDate.fromString("2024-02-29"),
  types.BigDecimal.fromString("-1.50"),
  0.1,
  new types.Duration(1, 2, types.Long.fromInt(3)),
  1.5,
  types.InetAddress.fromString("127.0.0.1"),
  -2,
  "grün",
  types.LocalTime.fromString("12:34:56.789012345"),
  new Date(1709210096789),
  types.TimeUuid.fromString("13814000-1dd2-11b2-8080-808080808080"),
  -128,
  types.Uuid.fromString("01234567-89ab-4def-8123-456789abcdef"),
  types.Integer.fromString("170141183460469231731687303715884105728"),
  [1, -1],
  ["a", "b"],
  { a: 1 },
  new types.Tuple(1, "x"),
  { street: "Market", zip: 7 },
  new types.Vector([1.5, -2, 0], "float"),
];

async function refused(client, statement, options) {
  try {
    await client.execute(statement, [], options);
  } catch (error) {
    console.log(error.message);
    return;
  }
  throw new Error(`${statement} was taken`);
}

async function main() {
  const [host, port] = process.argv[2].split(":");
  const client = new cassandra.Client({
    contactPoints: [host],
    protocolOptions: { port: Number(port), maxVersion: 4 },
    localDataCenter: "datacenter1",
    credentials: { username: "cassandra", password: "cassandra" },
  });
  await client.connect();
  const prepare = { prepare: true };
  const marks = columns.map(() => "?").join(", ");
  const insert = `INSERT INTO golden.types (${columns.join(", ")}) VALUES (${marks})`;
  await client.execute(insert, values, prepare);
  await client.execute(insert, values.map((_, at) => (at === 0 ? 2 : null)), prepare);
  await client.execute(insert, values.map((_, at) => (at === 0 ? 3 : types.unset)), prepare);
  await client.execute("SELECT * FROM golden.types WHERE id = ?", [1], prepare);

  const row = "INSERT INTO golden.rows (part, num, val) VALUES (?, ?, ?)";
  const select = "SELECT part, num, val FROM golden.rows WHERE part = ?";
  const pages = { prepare: true, fetchSize: 2 };
  const first = await client.execute(select, [1], pages);
  await client.execute(select, [1], { ...pages, pageState: first.pageState });

  const text = "INSERT INTO golden.rows (part, num, val) VALUES (7, 1, 'b')";
  const mixed = [{ query: row, params: [7, 2, "c"] }];
  for (const logged of [true, false]) {
    await client.batch(mixed, { prepare: true, logged });
  }
  await client.batch([text], { logged: true });
  const count = "UPDATE golden.counts SET hits = hits + ? WHERE id = ?";
  await client.batch([{ query: count, params: [types.Long.fromInt(5), 1] }], {
    prepare: true,
    counter: true,
  });

  const condition = { prepare: true, serialConsistency: types.consistencies.localSerial };
  for (const value of ["first", "second"]) {
    await client.execute(`${row} IF NOT EXISTS`, [6, 1, value], condition);
  }
  await refused(client, "SELEKT 1", {});
  await refused(client, "INSERT INTO golden.rows (part, num) VALUES (2, 1)", {
    consistency: types.consistencies.two,
  });
  await client.shutdown();
}

main();
