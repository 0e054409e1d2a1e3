// The part of Workers' own types that the Durable Object needs; its users have `@cloudflare/workers-types`.

declare module "cloudflare:workers" {
  export abstract class DurableObject<Env = unknown> {
    protected readonly ctx: {
      readonly storage: { get<T>(key: string): Promise<T | undefined>; put(key: string, value: unknown): Promise<void> };
      waitUntil(promise: Promise<unknown>): void;
    };
    protected readonly env: Env;
  }
}
