// Where the tests run: the package as the host loaded it, and its servers.

import type * as Package from "messina-cql";
import type { ConnectOptions, Database, WebSocketClass } from "messina-cql";
import type * as Compat from "messina-cql/compat";
import type { Config } from "./suite.js";

export type Api = typeof Package;

/** The package's entries. */
export interface Entries {
  api: Api;
  compat: typeof Compat;
  lite: Api;
  /** The class `WebSocket` of npm, where the host has none of its own. */
  ws: WebSocketClass | undefined;
}

export interface Place {
  api: Api;
  config: Config;
  /** Connects by the transport of this run. */
  open(options?: Partial<ConnectOptions>): Promise<Database>;
  /** The options that `open` adds. */
  base: ConnectOptions;
  /** Steers the simulated cluster. */
  sim(command: object): Promise<any>;
  /** Steers another server. */
  tell(server: "relay" | "intercept", what: object): Promise<any>;
}

export function place({ api, ws }: Pick<Entries, "api" | "ws">, config: Config): Place {
  const tell = async (server: string, what: object) => {
    const response = await fetch(`${config.control}/${server}`, { method: "POST", body: JSON.stringify(what) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${server} ${JSON.stringify(what)}: ${text}`);
    return JSON.parse(text);
  };
  replicas = config.server === "simulated" ? 3 : 1;
  const { transport, relay } = config;
  const by = transport === "tcp" ? {} : { relay: { url: relay.url, protocol: transport }, token: relay.token };
  const base: ConnectOptions = { contactPoints: config.contact, requestTimeout: 20_000, ...config.login, ...by, ...(ws && { WebSocket: ws }) };
  return { api, config, base, open: (options) => api.connect({ ...base, ...options }), sim: (command) => tell("sim", command), tell };
}

/** Names of tables are not used twice. */
let tables = 0;

/** Replicas of a keyspace. */
let replicas = 3;

/** Makes a table of its own in a keyspace that is there. */
export async function table(db: Database, columns: string): Promise<string> {
  const replication = `{'class': 'NetworkTopologyStrategy', 'replication_factor': ${replicas}}`;
  await db.execute(`CREATE KEYSPACE IF NOT EXISTS suite WITH replication = ${replication}`);
  const name = `suite.t${Date.now()}_${tables++}`;
  await db.execute(`CREATE TABLE ${name} (${columns})`);
  return name;
}

/** How many of a cluster's shards have a connection. */
export function shardsReached(db: Database): number {
  const reached = db.cluster().nodes.flatMap(({ node, connections }) => connections.map(({ shard }) => `${node} ${shard}`));
  return new Set(reached).size;
}
