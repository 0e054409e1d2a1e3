// The picture of a cluster, as `src/cluster.rs` lays it out.

import type { Reader } from "./module.js";
import { uuidText } from "./values/texts.js";

/** What is known of a cluster. */
export interface Cluster {
  /** Requests that reached the shard they were meant for. */
  readonly reached: number;
  /** Requests that missed it. */
  readonly missed: number;
  /** Connections attempted. */
  readonly connects: number;
  /** Prepared statements kept. */
  readonly prepared: number;
  readonly nodes: readonly ClusterNode[];
  readonly tables: readonly ClusterTable[];
}

export interface ClusterNode {
  /** By this number replicas name it. */
  readonly node: number;
  readonly hostId: string;
  readonly address: string;
  readonly dataCenter: string;
  readonly rack: string;
  readonly isUp: boolean;
  /** 0 if the node does not shard. */
  readonly shards: number;
  readonly connections: readonly { readonly shard: number | undefined; readonly inFlight: number; readonly orphans: number }[];
  /** Requests answered, by shard. */
  readonly requests: readonly { readonly shard: number | undefined; readonly count: number }[];
}

export interface ClusterTable {
  readonly keyspace: string;
  readonly table: string;
  /** Tablets learned; those below are the first of them. */
  readonly learned: number;
  readonly tablets: readonly Tablet[];
}

export interface Tablet {
  /** The token before its first one. */
  readonly first: bigint;
  /** Its last token. */
  readonly last: bigint;
  readonly version: bigint | undefined;
  /** The leader first where the keyspace is strongly consistent. */
  readonly replicas: readonly { readonly node: number | undefined; readonly shard: number }[];
}

/** Reads it; undefined without a session. */
export function readCluster(reader: Reader): Cluster | undefined {
  if (!IS_WHOLE || reader.isAtEnd) return undefined;
  const [reached, missed, connects, prepared] = [reader.number(), reader.number(), reader.number(), reader.word()];
  const nodes = reader.list(() => ({
    node: reader.word(),
    hostId: uuidText(reader.bytes(), 0),
    address: reader.text(),
    dataCenter: reader.text(),
    rack: reader.text(),
    isUp: reader.word() === 1,
    shards: reader.word(),
    connections: reader.list(() => ({ shard: reader.maybe(), inFlight: reader.word(), orphans: reader.word() })),
    requests: reader.list(() => ({ shard: reader.maybe(), count: reader.number() })),
  }));
  const tables = reader.list(() => ({
    keyspace: reader.text(),
    table: reader.text(),
    learned: reader.word(),
    tablets: reader.list(() => {
      const [first, last, bits] = [reader.long(), reader.long(), reader.long()];
      const version = reader.word() === 1 ? BigInt.asUintN(64, bits) : undefined;
      return { first, last, version, replicas: reader.list(() => ({ node: reader.maybe(), shard: reader.word() })) };
    }),
  }));
  return { reached, missed, connects, prepared, nodes, tables };
}
