// Compiled by `npm run check`, never run: what users write has the types they expect.
import { CqlError, connect, type Database, type Sockets } from "../js/index.js";

async function use(sockets: Sockets): Promise<bigint[]> {
  await using db: Database = await connect({ contactPoints: ["node:9042"], keyspace: "shop", sockets });
  const statement = await db.prepare("SELECT b FROM item WHERE k = ?");
  const result = await statement.run([1], { signal: AbortSignal.timeout(100), pageSize: 10, idempotent: true });
  for (const row of result) console.log(row.b);
  const next: Uint8Array | undefined = result.pagingState;
  await statement.run({ k: 1 }, { pagingState: next });
  // @ts-expect-error contact points are needed
  await connect({});
  // @ts-expect-error no such option
  await db.query("SELECT", [], { retries: 3 });
  return result.column("b") as bigint[];
}

export function isRetryable(error: unknown): boolean {
  return error instanceof CqlError && error.kind === "timeout" && !error.applied;
}

export { use };
