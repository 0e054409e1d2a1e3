// A Durable Object that keeps one database open for many requests.

import { open, refused } from "./database.js";
import type { Env } from "./env.js";
import { respond } from "./items.js";
import type { Database } from "messina-cql";

export class Pool {
  #env: Env;
  #db: Promise<Database> | undefined;

  constructor(_state: unknown, env: Env) {
    this.#env = env;
  }

  async fetch(request: Request): Promise<Response> {
    try {
      this.#db ??= open(this.#env);
      return await respond(await this.#db, request, new URL(request.url).pathname.replace("/pool", ""));
    } catch (error) {
      return refused(error);
    }
  }
}
