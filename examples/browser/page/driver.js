// The only file that knows the driver: opens it, runs statements, and tells what it has learned.

import { ordered } from "./cluster.js";

/** More tablets than this the page does not draw. */
const TABLETS_MAX = 512;

export class Driver {
  #db;
  /** Places of nodes on the page, by host id and by address. */
  #byId;
  #byAddress;
  #prepared = new Map();

  /** Connects through the relay; the relay logs in, so there is no password here. */
  static async open({ nodes, relay }) {
    const { connect } = await import("./messina/browser/index.js");
    const db = await connect({
      contactPoints: nodes.map((node) => node.contact),
      relay,
      token: async () => (await fetch("token")).text(),
      routing: "full",
      requestTimeout: 5000,
    });
    return new Driver(db, nodes);
  }

  constructor(db, nodes) {
    this.#db = db;
    this.#byId = new Map(nodes.map((node, at) => [node.host_id, at]));
    this.#byAddress = new Map(nodes.map((node, at) => [node.contact, at]));
  }

  /** Runs a text as it is; the answer's rows are arrays in the order of the columns. */
  async run(text, options) {
    const began = performance.now();
    const result = await this.#db.execute(text, undefined, options);
    return {
      columns: result.columns,
      rows: Array.from({ length: result.length }, (_, row) => result.columns.map((_, column) => result.value(row, column))),
      pagingState: result.pagingState,
      warnings: result.warnings,
      time: performance.now() - began,
      ...this.#place(result),
    };
  }

  /** Runs a prepared statement, and makes nothing of its rows. */
  async execute(text, values, options) {
    let statement = this.#prepared.get(text);
    if (!statement) this.#prepared.set(text, (statement = this.#db.prepare(text)));
    const began = performance.now();
    const result = await (await statement).run(values, options);
    return { time: performance.now() - began, ...this.#place(result) };
  }

  /** Where an answer came from: the node's place on the page, and its shard. */
  #place({ host, shard }) {
    return { node: this.#byAddress.get(host), shard };
  }

  /** Connections, nodes and what was counted, as the driver sees it. */
  cluster() {
    const cluster = this.#db.cluster(TABLETS_MAX);
    for (const node of cluster.nodes) this.#byAddress.set(node.address, this.#byId.get(node.hostId));
    return cluster;
  }

  /** Requests by node and shard of the page, as the driver counted the answers. */
  counted(cluster) {
    const counted = Array.from(this.#byId, () => []);
    for (const node of cluster.nodes) {
      const place = counted[this.#byId.get(node.hostId)];
      for (const { shard, count } of node.requests) if (place && shard !== undefined) place[shard] = count;
    }
    return counted;
  }

  /**
   * What the driver holds of each of a table's `tablets`: version and replicas, or undefined where it has learned
   * nothing yet.
   */
  view(table, tablets, cluster) {
    const numbers = new Map(cluster.nodes.map((node) => [node.node, this.#byId.get(node.hostId)]));
    const known = cluster.tables.find((known) => `${known.keyspace}.${known.table}` === table)?.tablets ?? [];
    return tablets.map(({ last, leader }) => {
      const token = BigInt(last);
      const held = known.find((held) => held.first < token && token <= held.last);
      const replicas = held?.replicas.map(({ node, shard }) => ({ node: numbers.get(node), shard }));
      return held && { version: held.version?.toString(16).padStart(16, "0"), replicas: ordered(replicas, leader) };
    });
  }

  close() {
    return this.#db.close();
  }
}
