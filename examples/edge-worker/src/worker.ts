// A Worker that keeps items in a table. Each request connects for itself, since sockets belong to the request that
// opened them; what an earlier one has learned makes that cheap. Under /pool/ the same is served by a Durable Object,
// whose connections stay open.

import { open, refused, save } from "./database.js";
import type { Context, Env } from "./env.js";
import { respond } from "./items.js";

export { Pool } from "./pool.js";

export default {
  async fetch(request: Request, env: Env, context: Context): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/pool/")) return env.POOL.get(env.POOL.idFromName("pool")).fetch(request);
    try {
      const db = await open(env);
      try {
        return await respond(db, request, pathname);
      } finally {
        // After the answer is on its way.
        context.waitUntil(save(db, env).finally(() => db.close()));
      }
    } catch (error) {
      return refused(error);
    }
  },
};
