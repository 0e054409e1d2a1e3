// The package of this repository, as it is built in `dist`.

import { connect, version } from "../package.mjs";
import { PAGE_ROWS, texts } from "../workload.mjs";

/** @param {{ contact: string, routing?: string }} place */
export async function open({ contact, routing }) {
  const db = await connect({ contactPoints: contact, ...(routing && { routing }) });
  const [select, insert, page] = await Promise.all([texts.select, texts.insert, texts.page].map((text) => db.prepare(text)));
  const options = { pageSize: PAGE_ROWS };
  return {
    version,
    select: async (/** @type {number} */ id) => (await select.one([id])).name.length,
    insert: (/** @type {unknown[]} */ values) => insert.run(values),
    objects: async () => (await page.run([], options)).rows(),
    column: async (/** @type {string} */ name) => (await page.run([], options)).column(name),
    close: () => db.close(),
  };
}
