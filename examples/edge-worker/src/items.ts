// GET and PUT /items/:id, and GET /items page by page. Templates bind their values and never put them into the text.
// Tables are named in full, so that a new connection has no keyspace to choose.

import type { Database } from "messina-cql";

interface Item {
  id: string;
  name: string;
  stock: number;
  updated: Date;
}

const PAGE = 50;
const PAGE_MAX = 500;

/** Answers a request for `/items…`. */
export async function respond(db: Database, request: Request, pathname: string): Promise<Response> {
  const [, , id] = /^\/items(\/([^/]+))?$/.exec(pathname) ?? [];
  if (id !== undefined) return one(db, request, decodeURIComponent(id));
  if (pathname !== "/items") return problem(404, "there are /items and /items/:id");
  return request.method === "GET" ? list(db, new URL(request.url)) : problem(405, "only GET");
}

async function one(db: Database, request: Request, id: string): Promise<Response> {
  if (request.method === "GET") {
    const result = await db.query<Item>`SELECT id, name, stock, updated FROM edge.items WHERE id = ${id}`;
    return result.first ? told(Response.json(result.first), result) : problem(404, `no item ${id}`);
  }
  if (request.method === "PUT") {
    const { name, stock = 0 } = ((await request.json().catch(() => null)) ?? {}) as Partial<Item>;
    if (typeof name !== "string" || !Number.isInteger(stock)) return problem(400, "a body like {\"name\": \"…\", \"stock\": 1}");
    const result = await db.query`INSERT INTO edge.items (id, name, stock, updated) VALUES (${id}, ${name}, ${stock}, ${new Date()})`;
    return told(new Response(null, { status: 204 }), result);
  }
  return problem(405, "only GET and PUT");
}

/** A page; `cursor` in the answer, given back as a parameter, gets the next. */
async function list(db: Database, { searchParams }: URL): Promise<Response> {
  const limit = Number(searchParams.get("limit") ?? PAGE);
  if (!(limit >= 1 && limit <= PAGE_MAX)) return problem(400, `limit is from 1 to ${PAGE_MAX}`);
  const pagingState = searchParams.get("cursor") ?? undefined;
  const result = await db.execute<Item>("SELECT id, name, stock, updated FROM edge.items", [], { pageSize: limit, pagingState });
  return told(Response.json({ items: result.rows(), cursor: result.pagingState ?? null }), result);
}

const problem = (status: number, message: string) => Response.json({ error: { kind: "request", message } }, { status });

/** The answer with the node and the shard that it came from. */
function told(response: Response, { host, shard }: { host?: string | undefined; shard?: number | undefined }): Response {
  response.headers.set("x-cql-node", host ?? "");
  response.headers.set("x-cql-shard", `${shard ?? ""}`);
  return response;
}
