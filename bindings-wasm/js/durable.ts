// A Durable Object that holds one connected database: where a Worker's connections outlive its requests.

import { DurableObject } from "cloudflare:workers";
import { connect, type ConnectOptions, type Database } from "./index.js";

/** Under this key the object keeps what the next connection starts with. */
const WARM_START_KEY = "messina-cql.warmStart";

/** Bytes of it; storage holds 128 KiB under one key. */
const WARM_START_MAX = 96 << 10;

/**
 * Extend it, say how to connect, and use `database()` in every request. Requests that come together share the
 * connections; when none has come for `idleTimeout` they are closed, and the next one starts warm.
 *
 * @example
 * export class Orders extends CqlObject<Env> {
 *   connectOptions() {
 *     return { contactPoints: this.env.CONTACT_POINTS, keyspace: "shop", routing: "full" };
 *   }
 *   async total(customer: string) {
 *     const db = await this.database();
 *     return (await db.query`SELECT total FROM orders WHERE customer = ${customer}`.column("total")).length;
 *   }
 * }
 */
export abstract class CqlObject<Env = unknown> extends DurableObject<Env> {
  /** Milliseconds without a call of `database()` after which the connections are closed. */
  protected idleTimeout = 60_000;
  #database: Promise<Database> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** How to connect; asked for each new connection. */
  protected abstract connectOptions(): ConnectOptions | Promise<ConnectOptions>;

  /** The database; connects if need be. */
  protected async database(): Promise<Database> {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.ctx.waitUntil(this.disconnect()), this.idleTimeout);
    const held = this.#database;
    if (held && !(await held).isClosed) return held;
    // Another call may have been first while this one waited.
    if (this.#database === held) {
      const connecting = this.#connect();
      this.#database = connecting;
      connecting.catch(() => {
        if (this.#database === connecting) this.#database = undefined;
      });
    }
    return this.#database!;
  }

  /** Closes the connections; the next call of `database()` opens others. */
  protected async disconnect(): Promise<void> {
    clearTimeout(this.#timer);
    const held = this.#database;
    this.#database = undefined;
    const database = await held?.catch(() => undefined);
    if (!database || database.isClosed) return;
    try {
      const warmStart = database.warmStart(WARM_START_MAX);
      if (warmStart.length > 0) await this.ctx.storage.put(WARM_START_KEY, warmStart);
    } finally {
      await database.close({ timeout: 5_000 });
    }
  }

  async #connect(): Promise<Database> {
    const options = await this.connectOptions();
    const warmStart = options.warmStart ?? (await this.ctx.storage.get<Uint8Array>(WARM_START_KEY));
    return connect(warmStart ? { ...options, warmStart } : options);
  }
}
