// The package. `#host` is the file of `hosts/` that the build puts in its place.

import * as host from "#host";
import { connectBy, type ConnectOptions } from "./connect.js";
import type { Database } from "./database.js";

export type { BatchOptions, BatchPart } from "./batch.js";
export type { Cluster, ClusterNode, ClusterTable, Tablet } from "./cluster.js";
export type { ConnectOptions } from "./connect.js";
export { Database } from "./database.js";
export { CqlError, type CqlErrorDetails, type CqlErrorFacts, type CqlErrorKind } from "./error.js";
export type { CompiledModule, RelayOptions, ShardWish, Socket, SocketEvents, Sockets, TlsOptions, WebSocketClass } from "./hosts/host.js";
export type { Column } from "./module.js";
export type { Consistency, PageOptions, RequestOptions, RunOptions } from "./options.js";
export { Query } from "./query.js";
export { Result, type AnyRow, type ColumnValues } from "./result.js";
export { Statement, type Values } from "./statement.js";
export type { ValueOptions } from "./values/codec.js";
export { Duration } from "./values/duration.js";
export { LocalDate, LocalTime } from "./values/local.js";
export { Decimal } from "./values/varint.js";

/** Connects: resolves when a node has answered and requests can be made. */
export const connect = (options: ConnectOptions): Promise<Database> => connectBy(host, options);
