// What every driver is asked, and the tables for it.

/** Rows of a page. */
export const PAGE_ROWS = 5_000;

export const texts = {
  select: "SELECT name, amount, score FROM bench.items WHERE id = ?",
  insert: "INSERT INTO bench.items (id, name, amount, score) VALUES (?, ?, ?, ?)",
  // The key is no marker, so that the simulator does not give its fixed answer of one row.
  page: "SELECT seq, amount, name, score, code FROM bench.pages WHERE part = 0",
};

const TABLES = [
  "CREATE KEYSPACE bench WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 3}",
  "CREATE TABLE bench.items (id int PRIMARY KEY, name text, amount bigint, score double)",
  "CREATE TABLE bench.pages (part int, seq int, amount bigint, name text, score double, code blob, PRIMARY KEY (part, seq))",
];

/**
 * The works by name: how one request is made, and how many are in flight unless that is varied.
 *
 * @typedef {Awaited<ReturnType<typeof import("./drivers/messina.mjs").open>>} Driver
 * @type {Record<string, (driver: Driver, count: number) => Promise<unknown>>}
 */
export const works = {
  select: (driver, count) => driver.select(count % 10_000),
  insert: (driver, count) => driver.insert([count % 10_000, `name of ${count % 100}`, BigInt(count), count / 8]),
  objects: (driver) => driver.objects().then(checkedObjects),
  column: (driver) => driver.column("amount").then(checkedColumn),
};

/** @param {any[]} rows */
function checkedObjects(rows) {
  const last = rows[rows.length - 1];
  if (rows.length !== PAGE_ROWS || last.seq !== PAGE_ROWS - 1 || last.amount !== BigInt(last.seq) * 1_000_003n) {
    throw new Error(`not the page: ${rows.length} rows, the last of them ${last?.seq}, ${last?.amount}`);
  }
}

/** @param {ArrayLike<unknown>} values */
function checkedColumn(values) {
  const last = values[PAGE_ROWS - 1];
  if (values.length !== PAGE_ROWS || last !== BigInt(PAGE_ROWS - 1) * 1_000_003n) {
    throw new Error(`not the column: ${values.length} values, the last of them ${last}`);
  }
}

/** Makes the tables and the rows of the page. @param {import("messina-cql").Database} db */
export async function fill(db) {
  for (const text of TABLES) await db.execute(text);
  // A key that is no marker is stored also by a simulator that gives fixed answers.
  const insert = await db.prepare("INSERT INTO bench.pages (part, seq, amount, name, score, code) VALUES (0, ?, ?, ?, ?, ?)");
  const code = Uint8Array.from({ length: 16 }, (_, at) => at);
  for (let seq = 0; seq < PAGE_ROWS; seq += 250) {
    const rows = Array.from({ length: 250 }, (_, at) => seq + at);
    await Promise.all(rows.map((at) => insert.run([at, BigInt(at) * 1_000_003n, `the name of row ${at}`, at / 8, code])));
  }
}
