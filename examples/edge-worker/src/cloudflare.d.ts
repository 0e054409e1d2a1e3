// What `messina-cql/durable` stands on; `@cloudflare/workers-types` tells all of it.

declare module "cloudflare:workers" {
  export abstract class DurableObject<Env = unknown> {
    constructor(state: unknown, env: Env);
    protected readonly env: Env;
    protected readonly ctx: unknown;
  }
}
