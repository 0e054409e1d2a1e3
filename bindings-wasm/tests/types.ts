// Compiled by `npm run check` against the types that ship, never run: what users write has the types they expect.
import { CqlError, Decimal, Duration, LocalDate, connect, type Database, type Query, type Result, type Sockets, type Statement } from "messina-cql";
import { Client, types } from "messina-cql/compat";
import { connect as connectLite } from "messina-cql/lite";
import { dateOf, timeuuid } from "messina-cql/timeuuid";
import { loadModule } from "messina-cql/wasm";

interface Item {
  k: number;
  b: bigint | null;
}

async function use(sockets: Sockets): Promise<BigInt64Array> {
  await using db: Database = await connect({ contactPoints: ["node:9042"], keyspace: "shop", sockets });
  const k = 1;
  const query: Query<Item> = db.query<Item>`SELECT k, b FROM item WHERE k = ${k}`;
  const result: Result<Item> = await query;
  const first: Item | null = result.first;
  const one: Item | null = await db.one<Item>`SELECT k, b FROM item WHERE k = ${k}`;
  for await (const row of query.with({ pageSize: 10, timeout: 100 })) console.log(row.b satisfies bigint | null);
  for await (const page of query.pages(500, { prefetch: 1 })) for (const row of page) console.log(row.k + 1);
  const statement: Statement<[number], Item> = await db.prepare<[number], Item>("SELECT k, b FROM item WHERE k = ?");
  const page = await statement.run([1], { signal: AbortSignal.timeout(100), pageSize: 10, idempotent: true });
  const next: string | undefined = page.pagingState;
  await statement.run([1], { pagingState: next });
  for (const row of await db.execute("SELECT * FROM item")) console.log(row.anything.goes);
  const named = await db.prepare<{ k: number }>("SELECT k FROM item WHERE k = ?");
  await named.run({ k: 1 });
  // @ts-expect-error contact points are needed
  await connect({});
  // @ts-expect-error no such option
  await db.execute("SELECT", [], { retries: 3 });
  // @ts-expect-error a tag, not a function of a text
  await db.query("SELECT 1");
  // @ts-expect-error the parameter is a number
  await statement.run(["1"]);
  // @ts-expect-error the name of the parameter is another
  await named.run({ key: 1 });
  console.log(first, one);
  return result.column<BigInt64Array>("b");
}

export function isRetryable(error: unknown): boolean {
  return error instanceof CqlError && error.kind === "timeout" && !error.applied && error.retryable;
}

export { use };

export async function moved(): Promise<string> {
  const client = new Client({ contactPoints: ["node"], localDataCenter: "dc1", messina: { relay: "wss://relay/cql", token: () => "t" } });
  const result = await client.execute("SELECT b FROM item WHERE k = ?", [1], { prepare: true, consistency: types.consistencies.localQuorum });
  for await (const row of result) console.log(row.get("b"));
  client.execute("SELECT b FROM item", (error, found) => console.log(error, found?.rowLength));
  await client.batch([{ query: "INSERT INTO item (k) VALUES (?)", params: [1] }], { logged: false });
  await client.shutdown();
  return types.Uuid.random().toString();
}

export class Values {
  decimal: Decimal = Decimal.parse("1.50");
  duration: Duration = new Duration(1, 2, 3n);
  date: string = LocalDate.parse("2026-11-30").toString();
  // @ts-expect-error nanoseconds are a bigint
  wrong = new Duration(1, 2, 3);
}

export const moduleOfText: Promise<WebAssembly.Module> = loadModule();
export const small: Promise<Database> = connectLite({ contactPoints: "node", wasm: moduleOfText, values: { bigint: "number", temporal: true } });
export const made: Date = dateOf(timeuuid(new Date()));
