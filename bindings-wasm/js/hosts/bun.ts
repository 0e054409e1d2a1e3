// Bun: TCP, TLS, and WebSockets through a relay.

import type { FailureReason, SocketOptions, Sockets } from "./host.js";
import { webSockets } from "./websocket.js";

interface BunSocket {
  /** How many bytes it took; -1 when it is closed. */
  write(bytes: Uint8Array): number;
  end(): void;
  terminate(): void;
  setNoDelay(on: boolean): void;
}

interface Handlers {
  open?(socket: BunSocket): void;
  handshake?(socket: BunSocket, isAuthorized: boolean, error: Error | null): void;
  data(socket: BunSocket, bytes: Uint8Array): void;
  drain(socket: BunSocket): void;
  end(socket: BunSocket): void;
  close(socket: BunSocket, error?: Error): void;
  error(socket: BunSocket, error: Error): void;
  connectError(socket: BunSocket, error: Error): void;
}

declare const Bun: {
  connect(options: { hostname: string; port: number; tls?: object; socket: Handlers }): Promise<BunSocket>;
  file(url: URL): { arrayBuffer(): Promise<ArrayBuffer> };
};

export function sockets(options: SocketOptions = {}): Sockets {
  if (options.relay) return webSockets(options);
  const { tls } = options;
  return (host, port, events) => {
    const stream = new Stream(events);
    stream.open(host, port, tls);
    return stream;
  };
}

/** Reads the module from the file beside the package's code. */
export async function loadModule(): Promise<WebAssembly.Module> {
  return (compiled ??= await WebAssembly.compile(await Bun.file(new URL(WASM_FILE, import.meta.url)).arrayBuffer()));
}

/** The build says where it lies. */
declare const WASM_FILE: string;

let compiled: WebAssembly.Module | undefined;

class Stream {
  #socket: BunSocket | undefined;
  #queue: { bytes: Uint8Array; sent: () => void }[] = [];
  #isOver = false;
  #isClosing = false;

  constructor(readonly events: Parameters<Sockets>[2]) {}

  open(hostname: string, port: number, tls: SocketOptions["tls"]) {
    const fail = (error: Error) => this.#fail(error);
    const opened = (socket: BunSocket) => {
      this.#socket = socket;
      if (this.#isOver) return socket.terminate();
      socket.setNoDelay(true);
      this.events.opened();
    };
    const socket: Handlers = {
      data: (_, bytes) => this.#isOver || this.events.data(bytes),
      drain: () => this.#write(),
      end: () => this.#closed(),
      close: (_, error) => (error ? fail(error) : this.#closed()),
      error: (_, error) => fail(error),
      connectError: (_, error) => fail(error),
      ...(tls
        ? { handshake: (held, isAuthorized, error) => (isAuthorized ? opened(held) : fail(untrusted(error))) }
        : { open: opened }),
    };
    const { ca = undefined, serverName = hostname } = typeof tls === "object" ? tls : {};
    const security = tls ? { tls: { serverName, rejectUnauthorized: true, ...(ca && { ca }) } } : {};
    Bun.connect({ hostname, port, socket, ...security }).catch(fail);
  }

  send(bytes: Uint8Array, sent: () => void) {
    this.#queue.push({ bytes, sent });
    if (this.#queue.length === 1) this.#write();
  }

  close() {
    this.#isOver = true;
    this.#isClosing = true;
    this.#write();
  }

  abort() {
    this.#isOver = true;
    this.#queue = [];
    this.#socket?.terminate();
  }

  /** Writes what the socket takes; `drain` tells when it takes more. */
  #write() {
    const socket = this.#socket;
    while (socket && this.#queue.length > 0) {
      const { bytes, sent } = this.#queue[0]!;
      const taken = Math.max(socket.write(bytes), 0);
      if (taken < bytes.length) {
        this.#queue[0] = { bytes: bytes.subarray(taken), sent };
        return;
      }
      this.#queue.shift();
      if (!this.#isOver) sent();
    }
    if (this.#isClosing) socket?.end();
  }

  #closed() {
    if (this.#isOver) return;
    this.#isOver = true;
    this.events.closed();
    this.#socket?.end();
  }

  #fail(error: Error) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.events.failed(reasonOf(error), error.message);
    this.#socket?.terminate();
  }
}

function untrusted(error: Error | null) {
  return Object.assign(new Error(error?.message ?? "the certificate is not trusted"), { code: "CERT" });
}

function reasonOf(error: Error): FailureReason {
  const { code = "" } = error as { code?: string };
  if (code === "ECONNREFUSED") return "refused";
  if (code === "ECONNRESET" || code === "EPIPE") return "reset";
  if (/NOTFOUND|EAI_|DNS/.test(code)) return "resolve";
  if (/UNREACH/.test(code)) return "unreachable";
  if (code === "ETIMEDOUT") return "timeout";
  return /CERT|SSL|TLS|SELF_SIGNED|UNABLE/.test(code) ? "tls" : "other";
}
