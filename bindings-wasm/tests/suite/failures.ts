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
