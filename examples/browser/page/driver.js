// The only file that knows the driver: opens it, runs statements, and tells what it has learned.

export class Driver {
  #db;
  /** Nodes by host id, in the order of the page. */
  #order;
  #prepared = new Map();

  /** Connects through the relay; the relay logs in, so there is no password here. */
  static async open({ nodes, relay }) {
    const { connect } = await import("./messina/browser/index.js");
    const db = await connect({
      contactPoints: nodes.map((node) => node.contact),
      relay: relay?.url,
      token: relay?.token,
      routing: "full",
      requestTimeout: 5000,
    });
    return new Driver(db, nodes);
  }

  constructor(db, nodes) {
    this.#db = db;
    this.#order = new Map(nodes.map((node, at) => [node.host_id, at]));
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

  /** Where an answer or an error came from: the node's place on the page, and its shard. */
  #place({ host, shard }) {
    return { node: this.#order.get(host?.id ?? host), shard: shard ?? undefined };
  }

  /** What the driver knows of tables' tablets, by `keyspace.table`; undefined if it cannot tell. */
  view() {
    return undefined;
  }

  close() {
    return this.#db.close();
  }
}
