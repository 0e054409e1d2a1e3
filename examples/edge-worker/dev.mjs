// One command: a simulated cluster, a relay if wanted, and the Worker in front of it.
//
// `node dev.mjs [--workerd] [--relay] [--port N] [--help]`

import { parseArgs } from "node:util";
import { bundle, ensure } from "./bundle.mjs";
import * as hosts from "./hosts.mjs";
import { servers } from "./servers.mjs";

const { values } = parseArgs({
  options: {
    workerd: { type: "boolean" },
    relay: { type: "boolean" },
    port: { type: "string", default: "8787" },
    help: { type: "boolean", short: "h" },
  },
});
if (values.help) {
  console.log(`A simulated cluster, and a Worker in front of it

Usage: node dev.mjs [--workerd] [--relay] [--port N]

  --workerd   in workerd alone instead of Miniflare
  --relay     through the relay instead of by TCP
  --port N    port of the Worker [default: 8787]`);
  process.exit();
}
ensure();
const { variables, stop } = await servers(values.relay);
try {
  const host = await (values.workerd ? hosts.workerd : hosts.miniflare)(await bundle(), variables, Number(values.port));
  console.log(`open ${host.url}/items  (Ctrl-C ends)`);
  await new Promise((resolve) => process.once("SIGINT", resolve).once("SIGTERM", resolve));
  await host.stop();
} finally {
  await stop();
}
