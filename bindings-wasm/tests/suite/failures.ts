// What goes wrong, and what is known of it afterwards.

import { equal, ok, rejects } from "./check.js";
import { table, type Place } from "./place.js";
import { eventually, type Test } from "./suite.js";

export const failures = ({ config, open, sim, tell }: Place): Test[] => [
  {
    name: "errors say who is at fault, with the server's number",
    async run() {
      const db = await open();
      await rejects(db.execute("SELEC 1"), { kind: "syntax", code: 0x2000, applied: false, name: "CqlError" });
      const error = await rejects(db.execute("SELECT k FROM nowhere.item"), { kind: "server", code: 0x2200, retryable: false });
      ok(error.message.includes("nowhere"), error.message);
      equal((await db.execute("SELECT key FROM system.local")).length, 1);
      await db.close();
    },
  },
  {
    name: "a write that may have been applied says so",
    isSimulated: true,
    async run() {
      const db = await open({ contactPoints: config.contact[0]! });
      const name = await table(db, "k int PRIMARY KEY");
      const insert = await db.prepare(`INSERT INTO ${name} (k) VALUES (?)`);
      await sim({ cmd: "fail_next", node: 0, error: "write_timeout" });
      await rejects(insert.run([1]), { code: 0x1100, applied: true, retryable: false });
      await insert.run([2]);
      await db.close();
    },
  },
  {
    name: "a signal gives a request up, before and while it runs, and harms no other",
    async run() {
      const db = await open();
      const select = await db.prepare("SELECT key FROM system.local WHERE key = ?");
      await rejects(select.run(["local"], { signal: AbortSignal.abort() }), { kind: "aborted", applied: false, name: "AbortError" });
      const controller = new AbortController();
      const given = select.run(["local"], { signal: controller.signal });
      const kept = select.run(["local"]);
      controller.abort(new Error("enough"));
      const error = await rejects(given, { kind: "aborted" });
      equal(error.cause?.message, "enough");
      equal([(await kept).length, (await select.run(["local"])).length], [1, 1]);
      await db.close();
    },
  },
  {
    name: "one signal for many requests is listened to once, and no longer than they run",
    async run() {
      const db = await open();
      const controller = new AbortController();
      const { signal } = controller;
      const listeners = new Set();
      let most = 0;
      const { addEventListener, removeEventListener } = signal;
      signal.addEventListener = (...told: any) => {
        listeners.add(told[1]);
        most = Math.max(most, listeners.size);
        addEventListener.apply(signal, told);
      };
      signal.removeEventListener = (...told: any) => {
        listeners.delete(told[1]);
        removeEventListener.apply(signal, told);
      };
      const ask = () => db.execute("SELECT key FROM system.local WHERE key = ?", ["local"], { signal });
      await Promise.all(Array.from({ length: 30 }, ask));
      equal([listeners.size, most], [0, 1]);
      const given = Promise.allSettled(Array.from({ length: 30 }, ask));
      controller.abort();
      equal((await given).map((told) => told.status === "rejected" && told.reason.kind), Array(30).fill("aborted"));
      await db.close();
    },
  },
  {
    name: "closing lets requests finish whose statements are still being prepared",
    async run() {
      const db = await open();
      const asked = db.query`SELECT key FROM system.local WHERE key = ${"local"}`.run();
      const closed = db.close();
      await rejects(db.execute("SELECT key FROM system.local WHERE key = ?", ["local"]), { kind: "usage", message: "the database is closed" });
      equal((await asked).length, 1);
      await closed;
    },
  },
  {
    name: "what is no part of a batch, and what holds values without names, is refused",
    async run() {
      const db = await open();
      const ran = await db.query`SELECT key FROM system.local WHERE key = ${"local"}`;
      for (const part of [ran, null, 5, [], [null, []]]) await rejects(db.batch([part as never]), { kind: "usage", message: /^a part of a batch/ });
      for (const values of [new Map([["key", "local"]]), new Set(["local"]), "local"]) {
        await rejects(db.execute("SELECT key FROM system.local WHERE key = ?", values as never), { kind: "usage", message: /^values are/ });
      }
      await db.close();
    },
  },
  {
    name: "options that mean nothing are refused by their name, and nothing is sent",
    async run() {
      const db = await open();
      const select = "SELECT key FROM system.local WHERE key = ?";
      const statement = await db.prepare(select);
      const slip = { idempotnt: true } as object;
      const page = { pageSize: 5 } as object;
      const refused = (name: string) => ({ kind: "usage", message: new RegExp(`^no option ${name}; there are signal, timeout`), applied: false });
      for (const values of [[], ["local"]]) await rejects(db.execute(values.length ? select : "SELEC", values, slip), refused("idempotnt"));
      await rejects(statement.run(["local"], slip), refused("idempotnt"));
      await rejects(statement.pages(["local"], slip).next(), refused("idempotnt"));
      await rejects(db.query`SELEC`.with(slip).run(), refused("idempotnt"));
      await rejects(db.prepare(select, page), refused("pageSize"));
      await rejects(db.batch(["SELEC"], page), refused("pageSize"));
      // What is undefined says nothing, and how far pages are fetched ahead counts where there are pages.
      const query = db.query`SELECT key FROM system.local WHERE key = ${"local"}`.with({ prefetch: 2, idempotnt: undefined } as object);
      equal([(await query).length, (await query.pages(1).next()).value?.length], [1, 1]);
      await db.close();
    },
  },
  {
    name: "limits that are no numbers above zero are refused, whether the statement is prepared or not",
    async run() {
      const db = await open();
      for (const limit of [0, -1, NaN, "5" as never]) {
        for (const values of [[], ["local"]]) {
          const text = `SELECT key FROM system.local${values.length ? " WHERE key = ?" : ""}`;
          await rejects(db.execute(text, values, { timeout: limit }), { kind: "usage", message: /^timeout is / });
          await rejects(db.execute(text, values, { pageSize: limit }), { kind: "usage", message: /^pageSize is / });
          equal((await db.execute(text, values, { timeout: Infinity, pageSize: 1 })).length, 1);
        }
      }
      await db.close();
    },
  },
  {
    name: "a request that is not answered ends at its timeout, and the connection goes on",
    async run() {
      const db = await open({ contactPoints: config.intercepted });
      await tell("intercept", { "silent request": [] });
      const started = performance.now();
      await rejects(db.execute("SELECT key FROM system.local /* silent request */", [], { timeout: 200 }), { kind: "timeout", applied: true });
      const took = performance.now() - started;
      ok(took > 150 && took < 3000, `${took} ms`);
      await rejects(db.execute("SELECT key FROM system.local /* silent request */", [], { signal: AbortSignal.timeout(100) }), { kind: "aborted" });
      equal((await db.execute("SELECT key FROM system.local")).length, 1);
      await db.close();
    },
  },
  {
    name: "it connects again when the node comes back",
    isSimulated: true,
    async run() {
      const db = await open({ contactPoints: config.contact[2]!, connectTimeout: 1000 });
      const select = await db.prepare("SELECT key FROM system.local");
      equal((await select.run()).length, 1);
      await sim({ cmd: "kill", node: 2 });
      try {
        await rejects(select.run([], { timeout: 500 }), { kind: /^(transport|timeout|unavailable|relay)$/ });
      } finally {
        await sim({ cmd: "start", node: 2 });
      }
      await eventually(async () => equal((await select.run([], { timeout: 1000 })).length, 1));
      await db.close();
    },
  },
  ...(config.transport === "tcp" ? [] : [
    {
      name: "it connects again when the relay comes back",
      async run() {
        const db = await open({ connectTimeout: 1000 });
        const select = await db.prepare("SELECT key FROM system.local");
        await tell("relay", { do: "stop" });
        try {
          await rejects(select.run([], { timeout: 500 }), { kind: /^(transport|timeout|unavailable|relay)$/ });
        } finally {
          await tell("relay", { do: "start" });
        }
        await eventually(async () => equal((await select.run([], { timeout: 1000 })).length, 1));
        await db.close();
      },
    },
  ]),
];
