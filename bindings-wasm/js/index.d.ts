/** Who is at fault. */
export type CqlErrorKind =
  | "aborted" | "auth" | "bug" | "config" | "encode" | "limit" | "protocol" | "server" | "syntax"
  | "timeout" | "transport" | "unavailable" | "usage";

/** What went wrong. */
export class CqlError extends Error {
  constructor(kind: CqlErrorKind, message: string, facts?: {
    code?: number; applied?: boolean; transient?: boolean; host?: string; shard?: number; attempts?: number;
    details?: Record<string, string | number | boolean>; cause?: unknown;
  });
  /** Who is at fault. */
  readonly kind: CqlErrorKind;
  /** The server's number; 0 if the error is not the server's. */
  readonly code: number;
  /** Whether a write may have taken effect in spite of the error. */
  readonly applied: boolean;
  /** Whether the same request may go well at another time and cannot have taken effect yet. */
  readonly retryable: boolean;
  /** The node at which it failed, and its shard. */
  readonly host: string | undefined;
  readonly shard: number | undefined;
  /** Attempts made; 0 if none reached a node. */
  readonly attempts: number;
  /** What the server told beside the text, as `received`, `required`, `writeType`. */
  readonly details: Readonly<Record<string, string | number | boolean>>;
}

/** A column or a bind marker. */
export interface Column {
  readonly name: string;
  /** The CQL type, as CQL writes it. */
  readonly type: string;
}

/** Values by position, or by the names of the markers. `null` writes null, `undefined` leaves the column as it is. */
export type Values = readonly unknown[] | { readonly [name: string]: unknown };

export interface RunOptions {
  /** Gives the request up. */
  signal?: AbortSignal;
  /** Milliseconds for the request with all its attempts. */
  timeout?: number;
  /** Rows of a page. */
  pageSize?: number;
  /** Where an earlier page ended. */
  pagingState?: Uint8Array;
  /** Running it twice does the same as running it once, so it may be repeated. */
  idempotent?: boolean;
  /** How many replicas must answer, by its CQL name. */
  consistency?: string;
  /** The level of the conditional part: `SERIAL` or `LOCAL_SERIAL`. */
  serialConsistency?: string;
  /** The write's timestamp in microseconds. */
  timestamp?: bigint;
  /** Asks the server to trace the request. */
  traced?: boolean;
}

export interface ConnectOptions {
  /** `host` or `host:port`. */
  contactPoints: string | readonly string[];
  keyspace?: string;
  user?: string;
  password?: string;
  localDataCenter?: string;
  applicationName?: string;
  /** Milliseconds to open a link, and for the first contact. */
  connectTimeout?: number;
  /** Milliseconds for a request that sets none. */
  requestTimeout?: number;
  /** Gives the attempt up. */
  signal?: AbortSignal;
  /** How sockets are opened; TCP by default. */
  sockets?: Sockets;
  /** The compiled module; by default that of the file beside the package's code. */
  wasm?: WebAssembly.Module;
}

/** Opens a byte stream. May report its failure only after it has returned. */
export type Sockets = (host: string, port: number, events: SocketEvents, wish: SocketWish) => Socket;

/** Where a socket should lead beyond its host: to a shard, or from a source port that leads to one. */
export interface SocketWish {
  readonly shard?: number;
  /** Number of shards; 0 without a wish. */
  readonly of: number;
  /** The source port to bind; 0 for any. */
  readonly sourcePort: number;
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
  data(bytes: Uint8Array): void;
  closed(): void;
  /** `"resolve"`, `"refused"`, `"reset"`, `"unreachable"`, `"timeout"`, `"tls"` or anything else. */
  failed(reason: string): void;
}

/** Rows of one page. Values are made when they are asked for. */
export class Result implements Iterable<Record<string, unknown>> {
  readonly columns: readonly Column[];
  /** Number of rows. */
  readonly length: number;
  /** Where the next page begins; undefined if this was the last one. */
  readonly pagingState: Uint8Array | undefined;
  readonly warnings: readonly string[];
  /** Whether a conditional statement was applied; undefined for others. */
  readonly applied: boolean | undefined;
  /** The node that answered, and its shard. */
  readonly host: string | undefined;
  readonly shard: number | undefined;
  value(row: number, column: number): unknown;
  row(row: number): Record<string, unknown>;
  rows(): Record<string, unknown>[];
  /** All values of one column, without making rows. */
  column(name: string): unknown[];
  [Symbol.iterator](): Iterator<Record<string, unknown>>;
}

/** A prepared statement. */
export class Statement {
  readonly markers: readonly Column[];
  run(values?: Values, options?: RunOptions): Promise<Result>;
}

/** What is known of a cluster. */
export interface Cluster {
  /** Requests that reached the shard they were meant for, and that missed it. */
  readonly reached: number;
  readonly missed: number;
  /** Connections attempted. */
  readonly connects: number;
  /** Prepared statements kept. */
  readonly prepared: number;
  readonly nodes: readonly {
    readonly node: number; readonly hostId: string; readonly address: string; readonly dataCenter: string;
    readonly rack: string; readonly isUp: boolean;
    /** 0 if the node does not shard. */
    readonly shards: number;
    readonly connections: readonly { readonly shard: number | undefined; readonly inFlight: number; readonly orphans: number }[];
    /** Requests answered, by shard. */
    readonly requests: readonly { readonly shard: number | undefined; readonly count: number }[];
  }[];
  readonly tables: readonly {
    readonly keyspace: string; readonly table: string;
    /** Tablets learned; those below are the first of them. */
    readonly learned: number;
    readonly tablets: readonly {
      /** The token before its first one, and its last one. */
      readonly first: bigint; readonly last: bigint; readonly version: bigint | undefined;
      /** The leader first where the keyspace is strongly consistent. */
      readonly replicas: readonly { readonly node: number | undefined; readonly shard: number }[];
    }[];
  }[];
}

/** A cluster. */
export class Database implements AsyncDisposable {
  prepare(text: string, options?: { signal?: AbortSignal }): Promise<Statement>;
  /** Runs a statement once; with values it is prepared first. */
  query(text: string, values?: Values, options?: RunOptions): Promise<Result>;
  /** Runs statements as one request: prepared ones with values, and texts without. */
  batch(
    statements: readonly (string | readonly [Statement, Values])[],
    options?: RunOptions & { type?: "logged" | "unlogged" | "counter" },
  ): Promise<Result>;
  /** What a later session may begin with; empty if nothing is known. */
  warmStart(lengthMax?: number): Uint8Array;
  /** What is known of the cluster, so many tablets of each table included. */
  cluster(tabletsMax?: number): Cluster | undefined;
  /** Requests under way finish, then every socket is closed. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Connects: resolves when one node answers and the cluster is known. */
export function connect(options: ConnectOptions): Promise<Database>;
