// The relay: whom it lets in, and where to.

import { equal, ok, rejects } from "./check.js";
import type { Place } from "./place.js";
import type { Test } from "./suite.js";

export const relayed = ({ config, open }: Place): Test[] => config.transport === "tcp" ? [] : [
  {
    name: "a wrong token or none lets nobody in",
    async run() {
      for (const token of ["wrong", undefined]) {
        const error = await rejects(open({ token: token as never, connectTimeout: 1500 }), { kind: /^(transport|relay|timeout)$/, applied: false });
        ok(error.message.includes(config.relay.url), error.message);
      }
    },
  },
  {
    name: "a token may be fetched, and what fails there is in the error's text",
    async run() {
      const db = await open({ token: async () => config.relay.token });
      equal((await db.execute("SELECT key FROM system.local")).length, 1);
      await db.close();
      const token = () => Promise.reject(new Error("no token today"));
      await rejects(open({ token, connectTimeout: 1500 }), { message: /no token today/ });
    },
  },
  {
    name: "a target that is not allowed is refused, with the relay's reason",
    async run() {
      const error = await rejects(open({ contactPoints: "10.1.2.3:9042", connectTimeout: 3000 }), { kind: /^(transport|relay|timeout)$/ });
      ok(/not allowed|refus|denied/i.test(error.message), error.message);
    },
  },
];
