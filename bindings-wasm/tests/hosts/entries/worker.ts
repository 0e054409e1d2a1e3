// workerd and Miniflare: each test in a request of its own, as Workers live.

import { connect, type Database } from "messina-cql";
import { place } from "../../suite/place.js";
import * as api from "messina-cql";
import { rejects } from "../../suite/check.js";
import { run, type Config, type Test } from "../../suite/suite.js";
import { names, runSuite } from "./run.js";

/** A client that outlives its request, which none may. */
let kept: Database | undefined;

export default {
  async fetch(request: Request): Promise<Response> {
    const config = (await request.json()) as Config;
    const lines: string[] = [];
    const line = (text: string) => void lines.push(text);
    switch (new URL(request.url).pathname) {
      case "/ready":
        break;
      case "/names":
        return Response.json(names(config));
      case "/keep":
        kept = await connect(place({ api, ws: undefined }, config).base);
        await kept.execute("SELECT key FROM system.local");
        break;
      case "/use":
        await run([foreign], undefined, (result) => line(JSON.stringify(result)));
        break;
      default:
        await runSuite(config, line);
    }
    return new Response(lines.join("\n"));
  },
};

const foreign: Test = {
  name: "a client that another request made throws a page of help, at once",
  async run() {
    const help = { kind: "usage", message: /another request[^]*Durable Object/ };
    await rejects(kept!.execute("SELECT key FROM system.local"), help);
    await rejects(kept!.query`SELECT key FROM system.local WHERE key = ${"local"}`, help);
    await rejects(kept!.prepare("SELECT key FROM system.local"), help);
  },
};
