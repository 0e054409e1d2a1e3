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
  // The cheapest thing that the runtime ties to a request and checks on every look.
  const ticket = new WebSocketPair()[0];
  return () => {
    try {
      void ticket.readyState;
    } catch (cause) {
      throw new CqlError("usage", FOREIGN_REQUEST, { cause });
    }
  };
}

const FOREIGN_REQUEST = `this client was made in another request of the Worker

A Worker's sockets belong to the request that opened them, so a client kept in a global variable
works once and then waits for ever. Instead:

  - connect in the handler:   await using db = await connect({ ... })
    One connection can ask at once. Give it what db.warmStart() returned before, kept in a global
    variable or in KV, and it needs no round trip to prepare statements.
  - or keep a pool in a Durable Object, whose sockets outlive requests: messina-cql/durable`;

function reasonOf(error: unknown): FailureReason {
  const text = error instanceof Error ? error.message : String(error);
  if (/TLS|certificate/i.test(text)) return "tls";
  if (/refused/i.test(text)) return "refused";
  if (/DNS|resolve/i.test(text)) return "resolve";
  if (/timed? ?out/i.test(text)) return "timeout";
  if (/reset|closed|disconnected/i.test(text)) return "reset";
  return /cannot connect|proxy request failed/i.test(text) ? "unreachable" : "other";
}
