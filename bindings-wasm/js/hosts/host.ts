// What a host gives to the package: byte streams, the module, and (in Workers) a guard.
//
// Each file beside this one is one host. It exports `sockets`, which makes the function that opens
// streams; `loadModule`; and `guard`, where a client may be used only by the request that made it.

/** Why a stream failed; the module knows the same words. */
export type FailureReason = "other" | "resolve" | "refused" | "reset" | "unreachable" | "timeout" | "tls" | "forbidden";

/** Opens a byte stream. May report its failure only after it has returned. */
export type Sockets = (host: string, port: number, events: SocketEvents, wish?: ShardWish) => Socket;

/** The shard that a stream should reach, where the far end goes by the port it comes from. */
export interface ShardWish {
  shard?: number;
  of?: number;
  /** A local port that leads there; hosts that cannot choose one leave it out. */
  localPort?: number;
}

export interface Socket {
  /** Sends bytes; `sent` is called when the network has taken them. */
  send(bytes: Uint8Array, sent: () => void): void;
  /** Closes the stream when everything is sent. */
  close(): void;
  /** Closes the stream at once. */
  abort(): void;
}

export interface SocketEvents {
  opened(): void;
  /** Bytes that came; they are copied before this returns. */
  data(bytes: Uint8Array): void;
  closed(): void;
  /** What went wrong: one word for the module, and all that the host said of it. */
  failed(reason: FailureReason, detail?: string): void;
}

/** The part of a WebSocket class that is needed; npm `ws` has it too. */
export type WebSocketClass = new (url: string, protocols: string[]) => {
  binaryType: string;
  readonly protocol: string;
  readonly bufferedAmount?: number;
  readonly readyState?: number;
  addEventListener(type: string, listener: (event: any) => void): void;
  send(bytes: Uint8Array): void;
  close(code?: number, reason?: string): void;
  terminate?(): void;
};

export interface RelayOptions {
  /** Where the relay listens, `ws:` or `wss:`. */
  url: string;
  /** `"mux"`: all streams over one WebSocket; `"cql"`: each has its own. */
  protocol?: "mux" | "cql";
}

export interface TlsOptions {
  /** Certificates to trust instead of the host's own, in PEM. */
  ca?: string;
  /** The name that the certificate must bear, if it is not the host of the contact point. */
  serverName?: string;
}

export interface SocketOptions {
  relay?: RelayOptions;
  token?: string | (() => string | Promise<string>);
  tls?: boolean | TlsOptions;
  /** The class to open WebSockets with, where the host has none. */
  WebSocket?: WebSocketClass;
}

/** `WebAssembly.Module`, also for those whose types know no such namespace. */
export type CompiledModule = typeof globalThis extends { WebAssembly: { Module: { prototype: infer M } } } ? M : object;

/** What each file beside this one exports. */
export interface Host {
  sockets(options: SocketOptions): Sockets;
  loadModule(): CompiledModule | Promise<CompiledModule>;
  /**
   * Runs a task when everything that is there to be read was read, but before the host sleeps. Missing where the host
   * does not say when that is.
   */
  later?(task: () => void): void;
  /** Belongs to the request that calls it; what it returns throws in any other. */
  guard?(): () => void;
}
