// The `cassandra-driver` of npm, set to the values that the package gives: BigInt for 64 bits.

import { createRequire } from "node:module";
import cassandra from "cassandra-driver";
import { PAGE_ROWS, texts } from "../workload.mjs";

const { version } = createRequire(import.meta.url)("cassandra-driver/package.json");

/** @param {{ contact: string }} place */
export async function open({ contact }) {
  const client = new cassandra.Client({
    contactPoints: [contact],
    localDataCenter: "dc1",
    encoding: { useBigIntAsLong: true },
  });
  await client.connect();
  const prepared = { prepare: true };
  const page = { prepare: true, fetchSize: PAGE_ROWS };
  return {
    version,
    select: async (/** @type {number} */ id) => (await client.execute(texts.select, [id], prepared)).rows[0].name.length,
    insert: (/** @type {unknown[]} */ values) => client.execute(texts.insert, values, prepared),
    objects: async () => (await client.execute(texts.page, [], page)).rows,
    column: async (/** @type {string} */ name) =>
      (await client.execute(texts.page, [], page)).rows.map((/** @type {any} */ row) => row[name]),
    close: () => client.shutdown(),
  };
}
