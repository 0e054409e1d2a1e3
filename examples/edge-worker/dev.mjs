// One command: a simulated cluster, a relay if wanted, and the Worker in front of it.
//
// `node dev.mjs [--workerd] [--relay] [--port N]`

import { parseArgs } from "node:util";
import { bundle, ensure } from "./bundle.mjs";
import * as hosts from "./hosts.mjs";
import { servers } from "./servers.mjs";

const { values } = parseArgs({
  options: { workerd: { type: "boolean" }, relay: { type: "boolean" }, port: { type: "string", default: "8787" } },
});
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
