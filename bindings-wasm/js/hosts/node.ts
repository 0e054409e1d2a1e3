// Node 20 and later: TCP, TLS, and WebSockets through a relay.

import { readFile } from "node:fs/promises";
import { connect, isIP, type OnReadOpts } from "node:net";
import { connect as connectTls } from "node:tls";
import type { FailureReason, SocketEvents, SocketOptions, Sockets, TlsOptions } from "./host.js";
import { webSockets } from "./websocket.js";

const REASONS: Record<string, FailureReason> = {
  ENOTFOUND: "resolve", EAI_AGAIN: "resolve", ECONNREFUSED: "refused", ECONNRESET: "reset", EPIPE: "reset",
  EHOSTUNREACH: "unreachable", ENETUNREACH: "unreachable", ETIMEDOUT: "timeout",
};

export function sockets(options: SocketOptions = {}): Sockets {
  if (options.relay) return webSockets(options);
  const tls = options.tls;
  return (host, port, events, wish) => {
    const target = { host, port, noDelay: true, localPort: wish?.localPort };
    const socket = tls ? connectTls({ ...target, ...tlsOptions(tls, host) }) : connect({ ...target, onread: intoOne(events) });
    socket.setNoDelay(true);
    socket.on(tls ? "secureConnect" : "connect", () => events.opened());
    if (tls) socket.on("data", (bytes: Buffer) => events.data(bytes));
    socket.on("end", () => events.closed());
    socket.on("close", () => events.closed());
    socket.on("error", (error: NodeJS.ErrnoException) => events.failed(reasonOf(error), error.message));
    return {
      send: (bytes, sent) => void socket.write(bytes, (error) => error || sent()),
      close: () => socket.destroySoon(),
      abort: () => void socket.destroy(),
    };
  };
}

/** Everything that can be read is read before these run. */
export const later: (task: () => void) => void = setImmediate;

/** Reads into one buffer again and again, in place of a new one for each chunk. */
function intoOne(events: SocketEvents): OnReadOpts {
  return {
    buffer: (chunk ??= new Uint8Array(CHUNK)),
    callback(length, buffer) {
      events.data(buffer.subarray(0, length));
      return true;
    },
  };
}

const CHUNK = 64 << 10;

/** All sockets share it: what was read is copied before another one reads. */
let chunk: Uint8Array | undefined;

/** Reads the module from the file beside the package's code. */
export async function loadModule(): Promise<WebAssembly.Module> {
  return (compiled ??= await WebAssembly.compile(await readFile(new URL(WASM_FILE, import.meta.url))));
}

/** The build says where it lies. */
declare const WASM_FILE: string;

let compiled: WebAssembly.Module | undefined;

function tlsOptions(tls: true | TlsOptions, host: string) {
  const { ca, serverName } = tls === true ? {} as TlsOptions : tls;
  // An address is no server name; the certificate is checked against it all the same.
  return { ca, servername: serverName ?? (isIP(host) ? "" : host) };
}

function reasonOf({ code = "" }: NodeJS.ErrnoException): FailureReason {
  if (code.startsWith("ERR_TLS") || code.startsWith("ERR_SSL") || /CERT|SELF_SIGNED|UNABLE_TO/.test(code)) return "tls";
  return REASONS[code] ?? "other";
}
