// What the shell needs from a host: byte streams.

/** Opens a byte stream. May report its failure only after it has returned. */
export type Sockets = (host: string, port: number, events: SocketEvents) => Socket;

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
  /** Bytes that came; they are copied before the call returns. */
  data(bytes: Uint8Array): void;
  closed(): void;
  /**
   * The stream could not be opened, or broke. `reason` is `"resolve"`, `"refused"`, `"reset"`, `"unreachable"`,
   * `"timeout"`, `"tls"` or anything else; `detail` is what the platform said (a WebSocket's close code and reason).
   */
  failed(reason: string, detail?: string): void;
}

/** What a host is told before it makes its sockets. */
export interface SocketOptions {
  /** A relay; without one the host opens plain TCP or TLS. */
  readonly relay?: { readonly url: string; readonly protocol: "mux" | "cql" };
  /** A fresh token for each WebSocket. */
  readonly token?: () => string | Promise<string>;
  /** TLS towards the nodes; `undefined` for none. */
  readonly tls?: { readonly ca?: string; readonly serverName?: string };
}

/** What each file in `hosts/` gives: how its host opens sockets and where it finds the module. */
export interface Host {
  sockets(options: SocketOptions): Sockets;
  loadModule(): WebAssembly.Module | Promise<WebAssembly.Module>;
}
