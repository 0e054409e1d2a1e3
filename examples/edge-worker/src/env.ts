// What the platform gives, as far as this Worker uses it.

export interface Env {
  /** Nodes, as the Worker or the relay reaches them: `host:port`, separated by commas. */
  readonly CONTACT_POINTS: string;
  /** A relay (`messina relay`), for clusters that the Worker cannot reach by itself. */
  readonly RELAY_URL?: string;
  readonly RELAY_TOKEN?: string;
  readonly CQL_USER?: string;
  readonly CQL_PASSWORD?: string;
  /** Where what was learned outlives this isolate. */
  readonly WARM?: Namespace;
  readonly POOL: Objects;
}

/** A KV namespace. */
export interface Namespace {
  get(key: string, type: "arrayBuffer"): Promise<ArrayBuffer | null>;
  put(key: string, value: Uint8Array, options?: { expirationTtl: number }): Promise<void>;
}

/** A namespace of Durable Objects. */
export interface Objects {
  idFromName(name: string): unknown;
  get(id: unknown): { fetch(request: Request): Promise<Response> };
}

export interface Context {
  waitUntil(work: Promise<unknown>): void;
}
