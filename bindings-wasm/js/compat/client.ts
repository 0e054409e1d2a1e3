// `Client` of cassandra-driver around a database of this package.

import type { BatchPart } from "../batch.js";
import type { ConnectOptions } from "../connect.js";
import type { Database } from "../database.js";
import { LEVELS, type RunOptions } from "../options.js";
import type { Types } from "../values/types.js";
import { parameters, typesOf, type Encoding, type Row } from "./codecs.js";
import { ArgumentError, NoHostAvailableError, driverError } from "./errors.js";
import { ResultSet, pagingOf } from "./result-set.js";
import { Long } from "./values.js";

export interface QueryOptions {
  /** A number of `types.consistencies`. */
  consistency?: number;
  serialConsistency?: number;
  fetchSize?: number;
  pageState?: string | Uint8Array;
  autoPage?: boolean;
  isIdempotent?: boolean;
  timestamp?: number | bigint | Long;
  readTimeout?: number;
  traceQuery?: boolean;
  /** Of batches. */
  logged?: boolean;
  counter?: boolean;
  /** Statements with parameters are prepared in any case, so this and `hints` change nothing. */
  prepare?: boolean;
  hints?: unknown;
  executionProfile?: unknown;
  [other: string]: unknown;
}

export interface ClientOptions {
  contactPoints: string[];
  localDataCenter?: string;
  keyspace?: string;
  credentials?: { username: string; password: string };
  authProvider?: { readonly username?: string; readonly password?: string };
  sslOptions?: { ca?: string | string[]; servername?: string } | null;
  queryOptions?: QueryOptions;
  socketOptions?: { connectTimeout?: number; readTimeout?: number };
  protocolOptions?: { port?: number };
  encoding?: Encoding;
  applicationName?: string;
  /** Options of this package's `connect`: relay, token, routing, .. */
  messina?: Partial<ConnectOptions>;
  [other: string]: unknown;
}

export type Callback<T> = (error: any, result?: T) => void;
export type Params = readonly unknown[] | Readonly<Record<string, unknown>> | null | undefined;

const DEFAULTS: QueryOptions = { consistency: 10, fetchSize: 5000 };

/** Made by the entry with its host's way to connect. */
export type Connect = (options: ConnectOptions, types: Types) => Promise<Database>;

export class Client {
  readonly options: ClientOptions;
  keyspace: string | undefined;
  readonly #connect: Connect;
  readonly #types: Types;
  #database: Promise<Database> | undefined;
  #connected: Database | undefined;
  #isShutDown = false;

  constructor(options: ClientOptions, connect?: Connect) {
    if (!options?.contactPoints?.length) throw new TypeError("Contacts points are not defined.");
    this.options = options;
    this.keyspace = options.keyspace;
    this.#connect = connect!;
    this.#types = typesOf(options.encoding);
  }

  get connected(): boolean {
    return this.#connected !== undefined && !this.#connected.isClosed;
  }

  /** The nodes that are known, as far as this shape of theirs goes. */
  get hosts(): { readonly length: number; values(): Host[]; keys(): string[]; forEach(callback: (host: Host, key: string) => void): void } {
    const nodes: Host[] = this.#connected?.cluster(0).nodes.map((node) => ({
      address: node.address, hostId: node.hostId, datacenter: node.dataCenter, rack: node.rack, isUp: () => node.isUp,
    })) ?? [];
    return {
      length: nodes.length,
      values: () => nodes,
      keys: () => nodes.map(({ address }) => address),
      forEach: (callback) => nodes.forEach((node) => callback(node, node.address)),
    };
  }

  connect(callback?: Callback<void>): Promise<void> {
    return told(this.#open().then(() => {}), callback);
  }

  execute(query: string, callback?: Callback<ResultSet>): Promise<ResultSet>;
  execute(query: string, params?: Params, callback?: Callback<ResultSet>): Promise<ResultSet>;
  execute(query: string, params?: Params, options?: QueryOptions, callback?: Callback<ResultSet>): Promise<ResultSet>;
  execute(query: string, ...rest: any[]): Promise<ResultSet> {
    const [[params, options], callback] = split(rest);
    return told(this.#run(query, params, options), callback);
  }

  /** Calls back for each row, and at the end of the page; with `autoPage` at the end of all pages. */
  eachRow(query: string, ...rest: any[]): void {
    const functions = rest.filter((part) => typeof part === "function");
    const [params, options = {}] = rest.filter((part) => typeof part !== "function") as [Params, QueryOptions?];
    const [eachRow, done = () => {}] = functions as [(n: number, row: Row) => void, Callback<ResultSet>?];
    let count = 0;
    const page = (pageState?: string): void => {
      this.#run(query, params, pageState ? { ...options, pageState } : options).then(
        (result) => {
          let n = 0;
          for (const row of result.rows ?? []) eachRow(n++, row);
          count += result.rowLength ?? 0;
          if (result.pageState !== null && options.autoPage) return page(result.pageState);
          if (result.pageState !== null) result.nextPage = () => page(result.pageState!);
          done(null, options.autoPage ? Object.assign(result, { rowLength: count }) : result);
        },
        (error) => done(error),
      );
    };
    page();
  }

  /** All rows of all pages: a `Readable` where `node:stream` is, else a `ReadableStream`. Pages are fetched as rows are read. */
  stream(query: string, params?: Params, options?: QueryOptions, callback?: Callback<void>): any {
    const run = () => this.#run(query, params, options);
    const rows = (async function* () {
      yield* await run();
    })();
    const { process } = globalThis as { process?: { getBuiltinModule?(name: string): any } };
    const node = process?.getBuiltinModule?.("node:stream");
    if (node) {
      const stream = node.Readable.from(rows, { objectMode: true });
      if (callback) stream.on("end", () => callback(null)).on("error", callback);
      return stream;
    }
    return new ReadableStream<Row>({
      async pull(controller) {
        try {
          const { value, done } = await rows.next();
          if (!done) return controller.enqueue(value);
          controller.close();
          callback?.(null);
        } catch (error) {
          controller.error(error);
          callback?.(error);
        }
      },
      async cancel() {
        await rows.return(undefined);
      },
    });
  }

  batch(queries: readonly (string | { query: string; params?: Params })[], ...rest: any[]): Promise<ResultSet> {
    const [[options], callback] = split(rest);
    return told(this.#batch(queries, options), callback);
  }

  /** Of each node: connections and requests under way. */
  getState(): { getConnectedHosts(): Host[]; getOpenConnections(host: Host): number; getInFlightQueries(host: Host): number } {
    const nodes = this.#connected?.cluster(0).nodes ?? [];
    const of = (host: Host) => nodes.find(({ address }) => address === host.address)?.connections ?? [];
    return {
      getConnectedHosts: () => this.hosts.values().filter((host) => of(host).length > 0),
      getOpenConnections: (host) => of(host).length,
      getInFlightQueries: (host) => of(host).reduce((sum, { inFlight }) => sum + inFlight, 0),
    };
  }

  shutdown(callback?: Callback<void>): Promise<void> {
    this.#isShutDown = true;
    const closed = this.#database?.then((database) => database.close(), () => {}) ?? Promise.resolve();
    return told(closed, callback);
  }

  /** Nothing is emitted; kept so that listeners can be set. */
  on(): this {
    return this;
  }
  once(): this {
    return this;
  }
  off(): this {
    return this;
  }
  removeListener(): this {
    return this;
  }

  async #open(): Promise<Database> {
    if (this.#isShutDown) throw new NoHostAvailableError("Client was shut down");
    const opening = (this.#database ??= this.#opened());
    try {
      return (this.#connected = await opening);
    } catch (error) {
      if (this.#database === opening) this.#database = undefined;
      throw driverError(error);
    }
  }

  async #opened(): Promise<Database> {
    const database = await this.#connect(connectOptions(this.options), this.#types);
    try {
      await checkDataCenter(database, this.options);
    } catch (error) {
      await database.close();
      throw error;
    }
    return database;
  }

  async #run(query: string, params: Params, options: QueryOptions = {}): Promise<ResultSet> {
    const database = await this.#open();
    const asked = { ...DEFAULTS, ...this.options.queryOptions, ...options };
    try {
      const result = await database.execute<Row>(query, parameters(params), runOptions(asked));
      return new ResultSet(result, asked.consistency, (pageState) => this.#run(query, params, { ...options, pageState }));
    } catch (error) {
      throw driverError(error);
    }
  }

  async #batch(queries: readonly (string | { query: string; params?: Params })[], options: QueryOptions = {}): Promise<ResultSet> {
    if (!Array.isArray(queries) || queries.length === 0) throw new ArgumentError("Queries should be an Array not empty");
    const database = await this.#open();
    const asked = { ...DEFAULTS, ...this.options.queryOptions, ...options };
    const parts: BatchPart[] = queries.map((part) => (typeof part === "string" ? part : [part.query, parameters(part.params)]));
    try {
      const type = asked.counter ? "counter" : asked.logged === false ? "unlogged" : "logged";
      const { pageSize, pagingState, ...rest } = runOptions(asked);
      return new ResultSet((await database.batch(parts, { ...rest, type })) as any, asked.consistency);
    } catch (error) {
      throw driverError(error);
    }
  }
}

/** What is known of a node. */
export interface Host {
  readonly address: string;
  readonly hostId: string;
  readonly datacenter: string;
  readonly rack: string;
  isUp(): boolean;
}

/** Refuses a data centre that no node is in. */
async function checkDataCenter(database: Database, { localDataCenter: name, contactPoints: [first] }: ClientOptions): Promise<void> {
  if (!name || database.cluster(0).nodes.some(({ dataCenter }) => dataCenter === name)) return;
  // What has just connected may not know all nodes yet.
  const read = (table: string) => database.execute<Row>(`SELECT data_center FROM system.${table}`);
  const [local, peers] = await Promise.all([read("local"), read("peers")]);
  const found = [...new Set([...local, ...peers].map((row) => row.data_center))];
  if (found.includes(name)) return;
  const inner = new ArgumentError(`localDataCenter was configured as '${name}', but only found hosts in data centers: [${found.join(", ")}]`);
  const text = `All host(s) tried for query failed. First host tried, ${first}: ${inner}. See innerErrors.`;
  throw Object.assign(new NoHostAvailableError(text), { innerErrors: { [first!]: inner } });
}

function connectOptions(given: ClientOptions): ConnectOptions {
  const port = given.protocolOptions?.port;
  const { username: user, password } = given.credentials ?? given.authProvider ?? {};
  const { ca, servername: serverName } = given.sslOptions ?? {};
  const tls = given.sslOptions && { ...(ca && { ca: [ca].flat().join("\n") }), ...(serverName && { serverName }) };
  const options = {
    contactPoints: given.contactPoints.map((point) => (port === undefined || /:\d+$/.test(point) ? point : `${point}:${port}`)),
    localDataCenter: given.localDataCenter, keyspace: given.keyspace, user, password, tls, applicationName: given.applicationName,
    connectTimeout: given.socketOptions?.connectTimeout, requestTimeout: given.socketOptions?.readTimeout || undefined,
    // As cassandra-driver does it: the whole cluster.
    routing: "full",
    ...given.messina,
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined && value !== null)) as unknown as ConnectOptions;
}

function runOptions(asked: QueryOptions): RunOptions {
  const { timestamp } = asked;
  return {
    consistency: levelOf(asked.consistency),
    serialConsistency: levelOf(asked.serialConsistency) as "SERIAL" | "LOCAL_SERIAL" | undefined,
    // 0 means that there is no limit, or none of its own.
    pageSize: asked.fetchSize || undefined,
    pagingState: pagingOf(asked.pageState),
    idempotent: asked.isIdempotent,
    timestamp: timestamp === undefined || timestamp === null ? undefined : timestamp instanceof Long ? timestamp.toBigInt() : BigInt(timestamp),
    timeout: asked.readTimeout || undefined,
    traced: asked.traceQuery,
  };
}

/** The level of a number; what is no such number is left as it is, to be refused. */
const levelOf = (level: number | undefined) => (level === undefined ? undefined : LEVELS[level] ?? (level as never));

/** Arguments without the callback at their end, and that callback. */
function split(rest: any[]): [any[], Callback<any> | undefined] {
  const at = rest.findIndex((part) => typeof part === "function");
  return at < 0 ? [rest, undefined] : [rest.slice(0, at), rest[at]];
}

/** A promise, or a call of a callback. */
function told<T>(promise: Promise<T>, callback: Callback<T> | undefined): Promise<T> {
  if (!callback) return promise;
  // Out of the promise, so that what a callback throws is not swallowed.
  const later = (...told: [any, T?]) => queueMicrotask(() => callback(...told));
  promise.then((result) => later(null, result), (error) => later(error));
  return undefined as unknown as Promise<T>;
}
