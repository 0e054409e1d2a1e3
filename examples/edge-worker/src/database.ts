// Connecting, and what to keep between requests: bytes, which may outlive them, unlike sockets.

import { connect, CqlError, type ConnectOptions, type Database } from "messina-cql";
import type { Env } from "./env.js";

/** What the last connection had learned: nodes, schema, prepared statements. */
let warm: Uint8Array | undefined;

/** Bytes of it that are kept. */
const WARM_MAX = 32 << 10;

/** How long a copy in KV is good for, in seconds. */
const WARM_TTL = 24 * 3600;

/** Connects by what is known from before: in this isolate, or in KV. */
export async function open(env: Env): Promise<Database> {
  warm ??= new Uint8Array((await env.WARM?.get("warm", "arrayBuffer")) ?? []);
  return connect(options(env, warm));
}

export function options(env: Env, warmStart?: Uint8Array): ConnectOptions {
  return {
    contactPoints: env.CONTACT_POINTS.split(","),
    connectTimeout: 3000,
    requestTimeout: 3000,
    ...(env.RELAY_URL && { relay: env.RELAY_URL }),
    ...(env.RELAY_TOKEN && { token: env.RELAY_TOKEN }),
    ...(env.CQL_USER && env.CQL_PASSWORD && { user: env.CQL_USER, password: env.CQL_PASSWORD }),
    ...(warmStart?.length && { warmStart }),
  };
}

/** Keeps what a connection has learned; in KV only if it is more than there was. */
export async function save(db: Database, env: Env): Promise<void> {
  const before = warm?.length ?? 0;
  warm = db.warmStart(WARM_MAX);
  if (warm.length > before) await env.WARM?.put("warm", warm, { expirationTtl: WARM_TTL });
}

/** An error as an answer: whose fault it was, and whether trying again may help. */
export function refused(error: unknown): Response {
  if (!(error instanceof CqlError)) throw error;
  const { kind, message, applied, retryable } = error;
  const status = kind === "encode" || kind === "usage" ? 400 : retryable || kind === "timeout" ? 503 : 502;
  return Response.json({ error: { kind, message, applied } }, { status });
}
