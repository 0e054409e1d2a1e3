// Deno: TCP, TLS, and WebSockets through a relay.

import type { FailureReason, SocketOptions, Sockets } from "./host.js";
import { carry, type Duplex } from "./streams.js";
import { webSockets } from "./websocket.js";

interface Connection extends Duplex {
  setNoDelay?(on: boolean): void;
}

declare const Deno: {
  connect(options: { hostname: string; port: number }): Promise<Connection>;
  startTls(connection: Connection, options: { hostname: string; caCerts?: string[] }): Promise<Connection>;
  readFile(url: URL): Promise<Uint8Array<ArrayBuffer>>;
};

export function sockets(options: SocketOptions = {}): Sockets {
  if (options.relay) return webSockets(options);
  const { tls } = options;
  return (hostname, port, events) => carry(open(hostname, port), events, reasonOf);

  async function open(hostname: string, port: number): Promise<Duplex> {
    const connection = await Deno.connect({ hostname, port });
    // It waits for acknowledgements otherwise.
    connection.setNoDelay?.(true);
    if (!tls) return connection;
    const { ca, serverName } = tls === true ? { ca: undefined, serverName: undefined } : tls;
    return Deno.startTls(connection, { hostname: serverName ?? hostname, ...(ca && { caCerts: [ca] }) });
  }
}

/** Reads the module from the file beside the package's code, or from where that came from. */
export async function loadModule(): Promise<WebAssembly.Module> {
  if (compiled) return compiled;
  const url = new URL(WASM_FILE, import.meta.url);
  const bytes = url.protocol === "file:" ? await Deno.readFile(url) : await (await fetch(url)).arrayBuffer();
  return (compiled ??= await WebAssembly.compile(bytes));
}

/** The build says where it lies. */
declare const WASM_FILE: string;

let compiled: WebAssembly.Module | undefined;

function reasonOf(error: unknown): FailureReason {
  const { name, message } = error as Error;
  if (name === "ConnectionRefused") return "refused";
  if (/^Connection(Reset|Aborted)$|^BrokenPipe$|^UnexpectedEof$/.test(name)) return "reset";
  if (/Unreachable/.test(name)) return "unreachable";
  if (name === "TimedOut") return "timeout";
  if (/certificate|tls/i.test(message)) return "tls";
  return /resolve|lookup/i.test(message) ? "resolve" : "other";
}
