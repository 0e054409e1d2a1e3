// Values of every type, to the node and back.

import { equal, ok, rejects } from "./check.js";
import { table, type Place } from "./place.js";
import type { Test } from "./suite.js";

export const values = ({ api, open }: Place): Test[] => {
  const { Decimal, Duration, LocalDate, LocalTime } = api;
  /** Each type with values at its edges. */
  const types: Record<string, unknown[]> = {
    ascii: ["plain", ""],
    bigint: [0n, -(2n ** 63n), 2n ** 63n - 1n],
    blob: [Uint8Array.of(0, 255, 7), new Uint8Array(0)],
    boolean: [true, false],
    date: [LocalDate.parse("2026-11-30"), LocalDate.parse("1583-01-01")],
    decimal: [Decimal.parse("-1.50"), Decimal.parse("12345678901234567890.123456789")],
    double: [0.1, -0, Infinity, 5e-324],
    duration: [Duration.parse("1mo2d3ns"), Duration.parse("-2y3s")],
    float: [0.5, Math.fround(0.1)],
    inet: ["127.0.0.1", "2001:db8::1"],
    int: [0, 2 ** 31 - 1, -(2 ** 31)],
    smallint: [-2, 2 ** 15 - 1],
    text: ["näher 😀", "", "'quoted'", "\u0000"],
    time: [LocalTime.parse("12:34:56.000000789"), LocalTime.parse("00:00:00")],
    timestamp: [new Date(1_700_000_000_123), new Date(-1)],
    timeuuid: ["d2177dd0-eaa2-11de-a572-001b779c76e3"],
    tinyint: [7, -128],
    uuid: ["00112233-4455-6677-8899-aabbccddeeff"],
    varint: [-(10n ** 30n), 0n, 255n],
    "frozen<list<int>>": [[1, 2, 3]],
    "frozen<set<text>>": [new Set(["a", "b"])],
    "map<text, bigint>": [new Map([["one", 1n], ["two", 2n]])],
    "map<int, frozen<list<text>>>": [new Map([[1, ["a"]], [2, []]])],
    "tuple<int, text, boolean>": [[1, null, true]],
    "vector<float, 3>": [Float32Array.of(1, -2, 0.5)],
    "vector<text, 2>": [["a", ""]],
  };
  return [
    {
      name: "values of every type come back as they went",
      async run() {
        const db = await open();
        const names = Object.keys(types).map((_, at) => `c${at}`);
        const columns = Object.keys(types).map((type, at) => `c${at} ${type}`);
        const name = await table(db, `k int PRIMARY KEY, ${columns.join(", ")}`);
        const insert = await db.prepare(`INSERT INTO ${name} (k, ${names}) VALUES (?, ${names.map(() => "?")})`);
        const select = await db.prepare(`SELECT ${names} FROM ${name} WHERE k = ?`);
        const longest = Math.max(...Object.values(types).map(({ length }) => length));
        for (let k = 0; k < longest; k++) {
          const given = Object.values(types).map((some) => some[k % some.length]);
          await insert.run([k, ...given]);
          const row = await select.one([k]);
          for (const [at, type] of Object.keys(types).entries()) equal(row?.[`c${at}`], given[at], `value ${k} of ${type}`);
        }
        await insert.run([longest, ...names.map(() => null)]);
        const none = await select.one([longest]);
        ok(names.every((name) => none?.[name] === null), "null is null in every type");
        await db.close();
      },
    },
    {
      name: "a user-defined type is an object",
      async run() {
        const db = await open();
        const name = await table(db, "k int PRIMARY KEY");
        const [type, holder] = [`${name}_address`, `${name}_holder`];
        await db.execute(`CREATE TYPE ${type} (street text, "zip code" int, tags frozen<set<text>>)`);
        await db.execute(`CREATE TABLE ${holder} (k int PRIMARY KEY, a frozen<${type.split(".")[1]}>)`);
        const address = { street: "s", "zip code": 1, tags: new Set(["t"]) };
        await db.execute(`INSERT INTO ${holder} (k, a) VALUES (?, ?)`, [1, address]);
        equal((await db.execute(`SELECT a FROM ${holder} WHERE k = ?`, [1])).value(0, 0), address);
        await db.close();
      },
    },
    {
      name: "null is null and undefined leaves the column as it is",
      async run() {
        const db = await open();
        const name = await table(db, "k int PRIMARY KEY, t text, d double");
        const put = (given: object) => db.execute(`INSERT INTO ${name} (k, t, d) VALUES (?, ?, ?)`, given as never);
        await put([5, "kept", 1.5]);
        await put({ k: 5, d: null });
        equal((await db.execute(`SELECT t, d FROM ${name}`)).rows(), [{ t: "kept", d: null }]);
        await db.close();
      },
    },
    {
      name: "big integers come in the form that is asked for",
      async run() {
        const kept = await open();
        const name = await table(kept, "k int PRIMARY KEY, b bigint");
        await kept.execute(`INSERT INTO ${name} (k, b) VALUES (1, 9007199254740993)`);
        for (const [bigint, expected] of [["bigint", 9007199254740993n], ["string", "9007199254740993"]] as const) {
          const db = await open({ values: { bigint } });
          equal((await db.execute(`SELECT b FROM ${name}`)).first?.b, expected);
          await db.close();
        }
        const db = await open({ values: { bigint: "number" } });
        await rejects(db.execute(`SELECT b FROM ${name}`).then(({ first }) => first), { kind: "decode" });
        await db.close();
        await kept.close();
      },
    },
    {
      name: "a value that does not fit its type is refused before anything is sent",
      async run() {
        const db = await open();
        const name = await table(db, "k int PRIMARY KEY, b bigint, u uuid, i inet, t tinyint");
        const insert = await db.prepare(`INSERT INTO ${name} (k, b, u, i, t) VALUES (?, ?, ?, ?, ?)`);
        const wrong = [
          ["1", 1n, null, null, null], [2 ** 31, 1n, null, null, null], [1, 2n ** 63n, null, null, null],
          [1, 1n, "no uuid", null, null], [1, 1n, null, "no address", null], [1, 1n, null, null, 128], [1.5, 1n, null, null, null],
        ];
        for (const given of wrong) await rejects(insert.run(given), { kind: "encode", applied: false });
        await rejects(insert.run([1]), { kind: "encode", message: /1 values for 5/ });
        equal((await db.execute(`SELECT k FROM ${name}`)).length, 0);
        await db.close();
      },
    },
  ];
};
