// The other entries of the package, and hosts that lack something.

import { equal, ok, rejects } from "./check.js";
import { table, type Entries, type Place } from "./place.js";
import type { Test } from "./suite.js";

export const entries = ({ api, base, config, open }: Place, { compat, lite, ws }: Entries): Test[] => [
  {
    name: "the lite entry asks over one connection",
    async run() {
      const { relay, ...rest } = base;
      const db = await lite.connect(relay ? { ...rest, relay: config.relay.url } : rest);
      const name = await table(db, "k int PRIMARY KEY, t text");
      const insert = await db.prepare(`INSERT INTO ${name} (k, t) VALUES (?, ?)`);
      await Promise.all(Array.from({ length: 50 }, (_, k) => insert.run([k, `t${k}`])));
      equal(await db.execute(`SELECT t FROM ${name} WHERE k = ?`, [7]).then(({ first }) => first), { t: "t7" });
      await rejects(db.execute("SELEC"), { kind: "syntax", code: 0x2000 });
      await db.close();
    },
  },
  {
    name: "the compat entry has the shape of cassandra-driver",
    async run() {
      const { user, password } = config.login ?? {};
      const client = new compat.Client({
        contactPoints: config.contact,
        localDataCenter: config.server === "simulated" ? "dc1" : "datacenter1",
        ...(user !== undefined && { credentials: { username: user, password: password! } }),
        ...(base.relay !== undefined && { messina: { relay: base.relay, token: base.token! } }),
      });
      await client.connect();
      const result = await client.execute("SELECT key FROM system.local WHERE key = ?", ["local"], { prepare: true });
      equal([result.rowLength, result.rows?.[0]?.key, result.first()?.get("key")], [1, "local", "local"]);
      await client.shutdown();
    },
  },
  ...(ws === undefined ? [] : [
    {
      name: "a host without WebSockets says so, and takes the class of the npm package ws",
      async run() {
        const relay = { relay: { url: config.relay.url }, token: config.relay.token };
        await rejects(open({ ...relay, WebSocket: undefined as never }), { kind: "config", message: /Node 22.*--experimental-websocket.*ws/ });
        for (const protocol of ["mux", "cql"] as const) {
          const db = await api.connect({ ...base, ...relay, relay: { url: config.relay.url, protocol }, WebSocket: ws });
          equal((await db.execute("SELECT key FROM system.local")).length, 1);
          await db.close();
        }
        const refused = await rejects(open({ ...relay, token: "wrong", WebSocket: ws, connectTimeout: 1500 }), { kind: /./ });
        ok(/401/.test(refused.message), refused.message);
        const forbidden = { ...relay, relay: { url: config.relay.url, protocol: "cql" }, WebSocket: ws, contactPoints: "10.1.2.3:9042" } as const;
        await rejects(open(forbidden), { kind: "relay", retryable: false, message: /not allowed by the relay/ });
      },
    },
  ]),
];
