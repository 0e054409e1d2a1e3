// Compiled by `npm run check` as programs for Node alone are: without the types of web pages or Workers.
import { connect, type Decimal } from "messina-cql";
import { Client } from "messina-cql/compat";
import { timeuuid } from "messina-cql/timeuuid";
import { loadModule } from "messina-cql/wasm";

export async function total(customer: string): Promise<Decimal | undefined> {
  const db = await connect({ contactPoints: ["node"], wasm: loadModule(), signal: AbortSignal.timeout(100) });
  const row = await db.one<{ total: Decimal }>`SELECT total FROM orders WHERE customer = ${customer} AND id = ${timeuuid()}`;
  await db.close();
  return row?.total;
}

export const client = new Client({ contactPoints: ["node"] });
