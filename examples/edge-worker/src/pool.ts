// A Durable Object that keeps one database open for many requests, connected to every shard.

import { CqlObject } from "messina-cql/durable";
import { options, refused } from "./database.js";
import type { Env } from "./env.js";
import { respond } from "./items.js";

export class Pool extends CqlObject<Env> {
  connectOptions() {
    return { ...options(this.env), routing: "full" as const };
  }

  async fetch(request: Request): Promise<Response> {
    try {
      const db = await this.database();
      return await respond(db, request, new URL(request.url).pathname.replace("/pool", ""));
    } catch (error) {
      return refused(error);
    }
  }
}
