// Where requests go, and what a connection remembers for the next one.

import { equal, ok } from "./check.js";
import { shardsReached, table, type Place } from "./place.js";
import { eventually, type Test } from "./suite.js";

export const routing = ({ open, sim }: Place): Test[] => [
  {
    name: "with full routing, requests reach the shard that owns their data",
    isSimulated: true,
    async run() {
      const db = await open({ routing: "full" });
      const name = await table(db, "k int PRIMARY KEY, v int");
      const insert = await db.prepare(`INSERT INTO ${name} (k, v) VALUES (?, ?)`);
      const select = await db.prepare(`SELECT v FROM ${name} WHERE k = ?`);
      await eventually(async () => equal(shardsReached(db), 6));
      // Learns the tablets.
      for (let round = 0; round < 3; round++) await Promise.all(Array.from({ length: 200 }, (_, k) => insert.run([k, k])));
      await sim({ cmd: "reset_stats" });
      const results = await Promise.all(Array.from({ length: 400 }, (_, k) => select.run([k % 200])));
      const { nodes } = await sim({ cmd: "stats" });
      const sum = (key: string) => nodes.reduce((total: number, node: any) => total + node[key], 0);
      const [requests, owned] = [sum("requests"), sum("at_owner_shard")];
      ok(requests >= 400 && owned >= 0.95 * requests, `${owned} of ${requests} requests at the owning shard`);
      ok(results.every(({ host, shard }) => typeof host === "string" && typeof shard === "number"), "each says where it went");
      const { nodes: seen, tables } = db.cluster();
      equal([seen.length, seen.map(({ shards }) => shards)], [3, [2, 2, 2]]);
      ok(tables.some(({ table, learned }) => name.endsWith(`.${table}`) && learned > 0), "tablets were learned");
      await db.close();
    },
  },
  {
    name: "without full routing, one connection is enough",
    isSimulated: true,
    async run() {
      await sim({ cmd: "reset_stats" });
      const db = await open();
      equal((await db.execute("SELECT key FROM system.local")).length, 1);
      const { nodes } = await sim({ cmd: "stats" });
      equal(nodes.reduce((total: number, node: any) => total + node.connections, 0), 1, "connections");
      await db.close();
    },
  },
  {
    name: "a warm start knows prepared statements, and one that is nonsense does no harm",
    async run() {
      const first = await open();
      const name = await table(first, "k int PRIMARY KEY, v int");
      const text = `INSERT INTO ${name} (k, v) VALUES (?, ?)`;
      await first.execute(text, [1, 2]);
      const warmStart = first.warmStart();
      await first.close();
      ok(warmStart.length > 0, "something to keep");
      const again = await open({ warmStart });
      await again.execute(text, [3, 4]);
      equal((await again.execute(`SELECT k FROM ${name}`)).length, 2);
      await again.close();
      for (const nonsense of [Uint8Array.of(1, 2, 3), warmStart.slice(0, warmStart.length / 2), warmStart.map((byte) => byte ^ 0x55)]) {
        const db = await open({ warmStart: nonsense });
        await db.execute(text, [5, 6]);
        await db.close();
      }
    },
  },
];
