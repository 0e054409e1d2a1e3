// Workers (workerd, Miniflare): `connect()` of `cloudflare:sockets`, and WebSockets through a relay.
//
// The module is imported, since Workers compile none at run time.

// @ts-ignore: only this host has it.
import { connect } from "cloudflare:sockets";
// @ts-ignore: the build puts the module's file here.
import compiled from "#wasm";
import { CqlError } from "../error.js";
import type { FailureReason, SocketOptions, Sockets } from "./host.js";
import { carry, type Duplex } from "./streams.js";
import { webSockets } from "./websocket.js";

declare const WebSocketPair: new () => { 0: { readonly readyState: number } };

interface TcpSocket extends Duplex {
  opened: Promise<unknown>;
}

export function sockets(options: SocketOptions = {}): Sockets {
  if (options.relay) return webSockets(options);
  if (typeof options.tls === "object" && options.tls.ca) {
    throw new CqlError("config", "tls.ca: a Worker trusts what its platform trusts, nothing else");
  }
  const secureTransport = options.tls ? "on" : "off";
  const expectedServerHostname = typeof options.tls === "object" ? options.tls.serverName : undefined;
  return (hostname, port, events) => carry(open(hostname, port), events, reasonOf);

  async function open(hostname: string, port: number): Promise<Duplex> {
    const settings = { secureTransport, allowHalfOpen: false, ...(expectedServerHostname && { expectedServerHostname }) };
    const socket: TcpSocket = connect({ hostname, port }, settings);
    await socket.opened;
    return socket;
  }
}

export const loadModule = (): WebAssembly.Module => compiled;

/**
 * Belongs to the request that calls it; what it returns throws in any other.
 *
 * A Worker's sockets and promises belong to one request. Used from another, a TCP socket throws and
 * a WebSocket never answers; this tells it at once.
 */
export function guard(): () => void {
  try {
    // Refused where no request is being handled, and so are sockets.
    crypto.getRandomValues(new Uint8Array(1));
  } catch (cause) {
    throw new CqlError("usage", `connect() was called while the Worker's script is loaded.\n\n${WHY}\n${WAYS_OUT}`, { cause });
  }
  // The cheapest thing that the runtime ties to a request and checks on every look.
  const ticket = new WebSocketPair()[0];
  return () => {
    try {
      void ticket.readyState;
    } catch (cause) {
      throw new CqlError("usage", `This database was connected in another request of the Worker.\n\n${WHY}\n${WAYS_OUT}`, { cause });
    }
  };
}

const WHY = `A Worker's sockets belong to the request that opens them. A client that is kept in a global variable answers its
first request; in the next one its sockets throw or, which is worse, never answer.`;

const WAYS_OUT = `
1. Connect in the handler. One connection can be asked at once, and what an earlier one learned spares the next its
   round trips:

     let warmStart;                       // bytes, no socket: these may stay
     export default {
       async fetch(request, env) {
         await using db = await connect({ contactPoints: env.NODES, warmStart });
         const row = await db.one\`SELECT * FROM orders WHERE id = \${id}\`;
         warmStart ??= db.warmStart();
         return Response.json(row);
       },
     };

2. The same with the bytes in KV, so that new instances start warm too:

     warmStart ??= new Uint8Array((await env.KV.get("cql", "arrayBuffer")) ?? 0);
     ctx.waitUntil(env.KV.put("cql", db.warmStart()));       // now and then

3. Keep the connections in a Durable Object, whose sockets outlive requests:

     import { CqlObject } from "messina-cql/durable";
     export class Orders extends CqlObject {
       connectOptions() { return { contactPoints: this.env.NODES }; }
       async fetch(request) {
         const db = await this.database();
         return Response.json(await db.one\`SELECT * FROM orders WHERE id = \${id}\`);
       }
     }`;

function reasonOf(error: unknown): FailureReason {
  const text = error instanceof Error ? error.message : String(error);
  if (/TLS|certificate/i.test(text)) return "tls";
  if (/refused/i.test(text)) return "refused";
  if (/DNS|resolve/i.test(text)) return "resolve";
  if (/timed? ?out/i.test(text)) return "timeout";
  if (/reset|closed|disconnected/i.test(text)) return "reset";
  return /cannot connect|proxy request failed/i.test(text) ? "unreachable" : "other";
}
