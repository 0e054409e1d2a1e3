// The relay: whom it lets in, and where to.

import { equal, ok, rejects } from "./check.js";
import { shardsReached, type Place } from "./place.js";
import { eventually, type Test } from "./suite.js";

export const relayed = ({ config, open, tell }: Place): Test[] => config.transport === "tcp" ? [] : [
  {
    name: "all connections of a client share a tunnel, or have a WebSocket each",
    isSimulated: true,
    async run() {
      const before = await tell("relay", { do: "count" });
      const db = await open({ routing: "full" });
      await eventually(async () => equal(shardsReached(db), 6));
      const after = await tell("relay", { do: "count" });
      const [sockets, channels] = [after.connections_total - before.connections_total, after.channels_total - before.channels_total];
      ok(config.transport === "mux" ? sockets === 1 : sockets === channels, `${sockets} WebSockets`);
      ok(channels >= 6, `${channels} channels`);
      await db.close();
    },
  },
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
    name: "a target that is not allowed is refused by the relay, and for good where the host tells its answer",
    async run() {
      const isTold = config.transport === "mux" || !/^(Node|Vercel|Chromium)/.test(config.host);
      for (const routing of ["single", "full"] as const) {
        const refused = open({ contactPoints: "10.1.2.3:9042", connectTimeout: 3000, routing });
        const error = await rejects(refused, { kind: "relay", applied: false, retryable: !isTold });
        ok(isTold ? error.message.includes("not allowed by the relay") : /refused/.test(error.message), error.message);
      }
    },
  },
];
