// What a node or an endpoint may do to the bytes: late, odd and absurd frames, and messages cut anywhere.

import { equal, ok, rejects } from "./check.js";
import { table, type Place } from "./place.js";
import { eventually, type Test } from "./suite.js";

/** Answers with one row, `v` 1 or 2, of a table whose key and value are integers. */
const ROW_1 = "84000005080000002300000002000000010000000100016b0001740001760009000000010000000400000001";
const ROW_2 = "84000006080000002300000002000000010000000100016b0001740001760009000000010000000400000002";

export const wire = ({ api, base, config, open, tell }: Place): Test[] => [
  {
    name: "a late answer never reaches another request",
    async run() {
      const db = await open({ contactPoints: config.intercepted });
      for (const way of ["timeout", "signal"]) {
        await tell("intercept", { "first request": [], "second request": [{ hex: ROW_1, as: "first request" }, { hex: ROW_2 }] });
        const options = way === "timeout" ? { timeout: 100 } : { signal: AbortSignal.timeout(100) };
        const first = db.execute("SELECT v FROM k.t /* first request */", [], options);
        await rejects(first, { kind: way === "timeout" ? "timeout" : "aborted" });
        const second = await db.execute("SELECT v FROM k.t /* second request */");
        equal(second.rows(), [{ v: 2 }], `after a ${way}`);
      }
      equal((await db.execute("SELECT key FROM system.local")).length, 1);
      await db.close();
    },
  },
  {
    name: "trace id, warnings and payload in front of an answer are read in their order",
    async run() {
      const db = await open({ contactPoints: config.intercepted });
      await tell("intercept", {
        "all of them": [{ hex: "840e0001080000002511111111222233334444555555555555000100027731000100016b00000002010200000001" }],
        "two of them": [{ hex: "840c00010800000015000100027731000100016b00000002010200000001" }],
      });
      const all = await db.execute("SELECT v FROM k.t /* all of them */");
      equal([all.warnings, all.length, all.tracingId], [["w1"], 0, "11111111-2222-3333-4444-555555555555"]);
      const two = await db.execute("SELECT v FROM k.t /* two of them */");
      equal([two.warnings, two.length, two.tracingId], [["w1"], 0, undefined]);
      await db.close();
    },
  },
  {
    name: "an absurd length of a frame fails the request at once, and later ones go well",
    async run() {
      const db = await open({ contactPoints: config.intercepted });
      for (const hex of ["840000010810000001", "8400000108ffffffff", "84000001087fffffff"]) {
        await tell("intercept", { "absurd length": [{ hex }] });
        const started = performance.now();
        await rejects(db.execute("SELECT v FROM k.t /* absurd length */"), { kind: /^(protocol|limit|transport)$/ });
        ok(performance.now() - started < 2000, "at once");
        await eventually(async () => equal((await db.execute("SELECT key FROM system.local")).length, 1));
      }
      await db.close();
    },
  },
  ...(["/", "/joined", "/five", "/uneven", "/bytes", "/ping"].map((path) => ({
    name: `messages of a plain pipe are a stream of bytes: ${path}`,
    async run() {
      const db = await api.connect({ ...base, relay: { url: `${config.pipe}${path}`, protocol: "cql" } });
      const name = await table(db, "k int PRIMARY KEY, t text");
      const insert = await db.prepare(`INSERT INTO ${name} (k, t) VALUES (?, ?)`);
      const select = await db.prepare(`SELECT t FROM ${name} WHERE k = ?`);
      const text = (k: number) => `${k}-`.repeat(path === "/bytes" ? 100 : 30_000);
      await Promise.all(Array.from({ length: 8 }, (_, k) => insert.run([k, text(k)])));
      const found = await Promise.all(Array.from({ length: 8 }, (_, k) => select.run([k])));
      found.forEach((result, k) => ok(result.value(0, 0) === text(k), `another text for ${k}`));
      await db.close();
    },
  }))),
  {
    name: "an endpoint that sends text is an error",
    async run() {
      const relay = { url: `${config.pipe}/text`, protocol: "cql" } as const;
      const error = await rejects(api.connect({ ...base, relay, connectTimeout: 1500 }), { kind: /^(transport|protocol|relay|timeout)$/ });
      ok(/text message/.test(error.message), error.message);
    },
  },
  {
    name: "the code and the reason of a closed WebSocket are in the error's text",
    async run() {
      const relay = { url: `${config.pipe}/close`, protocol: "cql" } as const;
      const error = await rejects(api.connect({ ...base, relay, connectTimeout: 1500 }), { kind: /^(transport|relay|timeout)$/ });
      ok(/4003/.test(error.message) && /this target is not allowed/.test(error.message), error.message);
    },
  },
  {
    name: "an endpoint that refuses the WebSocket is an error that names it",
    async run() {
      const relay = { url: `${config.pipe}/refuse`, protocol: "cql" } as const;
      const error = await rejects(api.connect({ ...base, relay, connectTimeout: 1500 }), { kind: /^(transport|relay|timeout)$/ });
      ok(error.message.includes(`${config.pipe}/refuse`), error.message);
    },
  },
];
