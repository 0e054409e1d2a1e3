// From the options of `connect` to a database.

import { Database } from "./database.js";
import { CqlError } from "./error.js";
import type { Consistency } from "./options.js";
import { Shell } from "./shell.js";
import type { CompiledModule, Host, SocketOptions, Sockets, TlsOptions, WebSocketClass } from "./hosts/host.js";
import type { ValueOptions } from "./values/codec.js";
import { Types } from "./values/types.js";

export interface ConnectOptions {
  /** `host` or `host:port`. */
  readonly contactPoints: string | readonly string[];
  /** A relay (`messina relay`) by its URL, for where plain TCP is not to be had. */
  readonly relay?: string | { readonly url: string; readonly protocol?: "mux" | "cql" };
  /** What the relay wants to see; a function is asked for each WebSocket. */
  readonly token?: string | (() => string | Promise<string>);
  readonly keyspace?: string;
  readonly user?: string;
  readonly password?: string;
  readonly localDataCenter?: string;
  readonly applicationName?: string;
  /**
   * `"single"`, the default: one connection to whichever contact point answers first, which can be asked at once.
   * `"full"`: all nodes, shards and tablets are learned, and requests go where their data is.
   */
  readonly routing?: "single" | "full";
  /**
   * With one connection, whether requests are sent beside the login: true, the default, saves a round trip, but then
   * `connect` resolves before the login is confirmed and a wrong password is the error of the first request.
   */
  readonly earlyRequests?: boolean;
  /** TLS to the nodes: true for the platform's own authorities. */
  readonly tls?: boolean | TlsOptions;
  /** What an earlier connection's `warmStart()` gave. */
  readonly warmStart?: Uint8Array;
  /** How many replicas have to answer a request that says nothing else. */
  readonly consistency?: Consistency;
  readonly serialConsistency?: "SERIAL" | "LOCAL_SERIAL";
  /** Rows of a page of a request that says nothing else. */
  readonly pageSize?: number;
  /** Milliseconds to open a link, and for the first contact. */
  readonly connectTimeout?: number;
  /** Milliseconds for a request that sets none. */
  readonly requestTimeout?: number;
  /** Gives the attempt up. */
  readonly signal?: AbortSignal;
  /** How values are made where there is a choice. */
  readonly values?: ValueOptions;
  /** The class to open WebSockets with, where the host has none (Node 20): that of the npm package `ws`. */
  readonly WebSocket?: WebSocketClass;
  /** How sockets are opened; the platform's own by default. */
  readonly sockets?: Sockets;
  /** The compiled module; by default that of the package. */
  readonly wasm?: CompiledModule | Promise<CompiledModule>;
}

/** Connects: resolves when a node has answered and requests can be made. */
export async function connectBy(host: Host, options = {} as ConnectOptions, types = new Types(options.values)): Promise<Database> {
  const { signal, values, sockets, wasm, contactPoints, relay, token, tls, WebSocket, ...rest } = options;
  const named = settings({
    contactPoints: [contactPoints].flat().join(","),
    ...(relay === undefined ? {} : { relay: relayOf(relay)!.protocol }),
    ...(tls ? { tls: true } : {}),
    ...rest,
  });
  const compiled = await (wasm ?? host.loadModule());
  const shell = new Shell(
    compiled, types, sockets ?? host.sockets(socketOptions(options)), host.guard?.(), relay !== undefined, host.later,
  );
  try {
    await shell.request<undefined>((module) => module.start(named), { signal });
  } catch (error) {
    shell.end(new CqlError("usage", "connecting failed", { cause: error }));
    throw error;
  }
  return new Database(shell, types);
}

/** What the module reads; it refuses names that it does not know. */
function settings(given: Record<string, unknown>): Record<string, string | Uint8Array> {
  const told = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(told.map(([name, value]) => [name, value instanceof Uint8Array ? value : String(value)]));
}

function relayOf(relay: ConnectOptions["relay"]): SocketOptions["relay"] {
  if (relay === undefined) return undefined;
  const protocol = IS_WHOLE ? "mux" : "cql";
  return typeof relay === "string" ? { url: relay, protocol } : { protocol, ...relay };
}

function socketOptions({ relay, token, tls, WebSocket }: ConnectOptions): SocketOptions {
  const given = { relay: relayOf(relay), token, tls, WebSocket };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
