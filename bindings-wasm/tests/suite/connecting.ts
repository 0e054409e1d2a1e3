// Opening and closing.

import { equal, ok, rejects, throws } from "./check.js";
import type { Place } from "./place.js";
import type { Test } from "./suite.js";

export const connecting = ({ api, config, open }: Place): Test[] => [
  {
    name: "connects cold and answers",
    async run() {
      const db = await open();
      const row = await db.one`SELECT key, cluster_name FROM system.local WHERE key = ${"local"}`;
      equal(row?.key, "local");
      ok(typeof row?.cluster_name === "string");
      await db.close();
      await db.close();
    },
  },
  {
    name: "a right password logs in, a wrong one or none is an error of kind auth",
    async run() {
      const { contact, user, password } = config.guarded;
      const login = (options: object) => open({ contactPoints: contact, ...options });
      const db = await login({ user, password });
      equal((await db.execute("SELECT key FROM system.local")).length, 1);
      await db.close();
      for (const options of [{ routing: "full" }, { earlyRequests: false }, {}]) {
        const asked = async (wrong: object) => {
          const refused = await login({ ...options, ...wrong });
          // The first request confirms the login, unless it was to be confirmed before.
          await refused.execute("SELECT key FROM system.local").finally(() => refused.close());
        };
        await rejects(asked({ user, password: "wrong" }), { kind: "auth", code: 0x0100, applied: false });
        await rejects(asked({ user: undefined, password: undefined }), { kind: "auth" });
      }
    },
  },
  {
    name: "disposing closes",
    async run() {
      const db: any = await open();
      await db[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]();
      await rejects(db.execute("SELECT key FROM system.local"), { kind: "usage" });
      await rejects(db.prepare("SELECT key FROM system.local"), { kind: "usage" });
    },
  },
  {
    name: "close waits for requests under way",
    isSimulated: true,
    async run() {
      const { guarded: { contact, ...login } } = config;
      for (const options of [{}, { contactPoints: contact, ...login }]) {
        const db = await open(options);
        const asked = Promise.all(Array.from({ length: 20 }, () => db.execute("SELECT key FROM system.local")));
        const [results] = await Promise.all([asked, db.close()]);
        for (const { length } of results) equal(length, 1);
      }
    },
  },
  {
    name: "a port where nobody listens is an error of kind transport or relay, with the host's words",
    async run() {
      const error = await rejects(open({ contactPoints: config.closed, connectTimeout: 2000 }), { kind: /^(transport|relay)$/ });
      ok(error.message.length > 10, error.message);
      equal(error.applied, false);
    },
  },
  {
    name: "a node that never answers costs the connect timeout, no more",
    async run() {
      const started = performance.now();
      await rejects(open({ contactPoints: config.silent, connectTimeout: 300 }), { kind: /^(transport|timeout)$/ });
      const took = performance.now() - started;
      ok(took > 200 && took < 5000, `${took} ms`);
    },
  },
  {
    name: "a signal gives connecting up, before and while it runs",
    async run() {
      await rejects(open({ signal: AbortSignal.abort() }), { kind: "aborted", name: "AbortError" });
      const controller = new AbortController();
      const opening = open({ contactPoints: config.silent, signal: controller.signal });
      setTimeout(() => controller.abort(new Error("enough")), 50);
      const error = await rejects(opening, { kind: "aborted" });
      equal(error.cause?.message, "enough");
    },
  },
  {
    name: "wrong settings are errors of kind config or usage",
    async run() {
      await rejects(open({ contactPoints: "a b" }), { kind: "config" });
      await rejects(open({ keyspce: "shop" } as never), { kind: /^(config|usage)$/, message: /keyspce/ });
      throws(() => new (api as any).CqlError("x", "y").kind.z.z, { name: "TypeError" });
    },
  },
  ...(config.transport === "tcp" && config.canTrust ? [
    {
      name: "TLS: the authority that is given is trusted, and no other",
      isSimulated: true,
      async run() {
        const { contact, ca } = config.tls;
        const db = await open({ contactPoints: contact, tls: { ca } });
        equal((await db.execute("SELECT key FROM system.local")).length, 1);
        await db.close();
        await rejects(open({ contactPoints: contact, tls: true, connectTimeout: 3000 }), { kind: "transport", message: /tls|certificate|issuer/i });
        await rejects(open({ contactPoints: contact, connectTimeout: 1000 }), { kind: /./ });
      },
    },
  ] : []),
];
