// cassandra-driver for Node goes through scenario.json and prints one JSON line for each check.
//
// It reports what it saw, values in the scenario's own notation; whether that is right is decided by the harness. A
// check that throws is reported with the error, and the next one is done. NODE_PATH names the folder of the packages.
"use strict";

const fs = require("node:fs");
const net = require("node:net");
const { parseArgs } = require("node:util");

const cassandra = require("cassandra-driver");
const { version } = require("cassandra-driver/package.json");

const { BigDecimal, Duration, InetAddress, Integer, LocalDate, LocalTime } = cassandra.types;
const { Long, Tuple, Uuid, consistencies } = cassandra.types;

const { values: options } = parseArgs({
  options: {
    contact: { type: "string" },
    user: { type: "string" },
    scenario: { type: "string" },
    cluster: { type: "string" },
    control: { type: "string" },
  },
});
const scenario = JSON.parse(fs.readFileSync(options.scenario, "utf8"));
const cluster = scenario.clusters[options.cluster];
const rowCount = cluster.rows ?? scenario.rows;

/** Row `number` as the scenario's text says. */
function row(number) {
  return [
    `region-${number % 13}`,
    Long.fromNumber(number).multiply(Long.fromString("7919000003")).subtract(Long.ONE.shiftLeft(60)),
    number % 5,
    number % 7 === 0 ? null : `náme ${number} \u{1f40d}`,
    Buffer.alloc((number % 5) * 11),
    Uuid.fromString(`00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`),
    number % 3 === 0,
    number / 7 - 50,
  ];
}

/** A value that was read, in the scenario's notation. */
function shown(value) {
  if (value === null || value === undefined) return null;
  if (value instanceof Set) return [...value].map(shown).sort();
  if (value instanceof Map) return [...value].map((pair) => pair.map(shown)).sort();
  if (value instanceof Tuple) return value.values().map(shown);
  if (Array.isArray(value)) return value.map(shown);
  if (value instanceof Long || value instanceof Integer) return integer(value);
  if (value instanceof BigDecimal) return [value._intVal.toString(), value._scale];
  if (value instanceof LocalDate) return Math.round(value.date.getTime() / 86_400_000);
  if (value instanceof LocalTime) return integer(value.getTotalNanoseconds());
  if (value instanceof Duration) return [value.months, value.days, integer(value.nanoseconds)];
  if (value instanceof Date) return value.getTime();
  if (value instanceof Uuid || value instanceof InetAddress) return value.toString();
  if (Buffer.isBuffer(value)) return `0x${value.toString("hex")}`;
  if (typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, shown(field)]));
  }
  return value;
}

function integer(value) {
  const number = Number(value.toString());
  return Number.isSafeInteger(number) ? number : value.toString();
}

function say(line) {
  fs.writeSync(1, `${JSON.stringify(line)}\n`);
}

/** Does one check and prints its line; gives whether it went through. */
async function check(name, table, action) {
  const start = performance.now();
  const line = { check: name, ...(table ? { table } : {}) };
  try {
    line.saw = await action();
  } catch (error) {
    console.error(error);
    line.error = `${error.name}: ${error.message}`;
  }
  line.seconds = Math.round(performance.now() - start) / 1000;
  say(line);
  return line.error === undefined;
}

/** The simulator's counters; null where there is no control port. */
function stats() {
  if (!options.control) return Promise.resolve(null);
  const [host, port] = options.control.split(":");
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = net.connect(Number(port), host, () => socket.write('{"cmd": "stats"}\n'));
    socket.setTimeout(10_000, () => socket.destroy(new Error("the control port is silent")));
    socket.on("error", reject);
    socket.on("data", (chunk) => {
      text += chunk;
      if (text.endsWith("\n")) {
        socket.destroy();
        resolve(JSON.parse(text));
      }
    });
  });
}

const keyspaceOf = (kind) => `javascript_${kind}`;
const cqlOf = (text, kind) =>
  text.replaceAll("{counters}", keyspaceOf(cluster.counters)).replaceAll("{keyspace}", keyspaceOf(kind));

/** One run through the scenario. */
class Visit {
  constructor() {
    const [host, port] = options.contact.split(":");
    const login = options.user
      ? { credentials: { username: options.user, password: process.env.MESSINA_PASSWORD } }
      : {};
    this.client = new cassandra.Client({
      contactPoints: [host],
      // Also of the nodes that it finds: their rows in system.peers name none.
      protocolOptions: { port: Number(port) },
      localDataCenter: cluster.datacenter,
      queryOptions: { consistency: consistencies.localQuorum, prepare: true },
      socketOptions: { connectTimeout: 10_000, readTimeout: 20_000 },
      encoding: { set: Set, map: Map },
      ...login,
    });
  }

  async run() {
    say({ driver: "cassandra-driver", version });
    if (await check("connect", null, () => this.connect())) {
      const rows = Array.from({ length: rowCount }, (_, number) => row(number));
      for (const kind of cluster.tables) await this.table(kind, rows);
      const { features, counters } = cluster;
      if (features) {
        await check("collections", null, () => this.collections(features));
        await check("udt", null, () => this.udt(features));
        await check("lwt", null, () => this.lwt(features));
        await check("batch", null, () => this.batch(features));
        await check("counter", null, () => this.counter(counters));
        await check("queries", null, () => this.queries(features));
        await check("errors", null, () => this.errors(features));
      }
    }
    await this.client.shutdown();
  }

  async connect() {
    await this.client.connect();
    return {
      hosts: this.client.getState().getConnectedHosts().length,
      protocol: this.client.controlConnection.protocolVersion,
      // It knows of no shards and of no extension.
      shard_aware: null,
      extensions: null,
    };
  }

  /** Plain statements go unprepared, as a person's would. */
  unprepared(text, kind) {
    return this.client.execute(cqlOf(text, kind), [], { prepare: false });
  }

  prepared(part, name, kind, values) {
    return this.client.execute(cqlOf(scenario[part][name], kind), values);
  }

  async table(kind, rows) {
    if (!(await check("schema", kind, () => this.createTable(kind)))) return;
    await check("write", kind, () => this.write(rows, kind));
    await check("read", kind, () => this.read(rows, kind));
    await check("warm_write", kind, () => this.counted(() => this.write(rows, kind)));
    await check("warm_read", kind, () => this.counted(() => this.read(rows, kind)));
    // A strongly consistent table answers for one partition at a time.
    if (kind !== "strong") await check("pages", kind, () => this.pages(rows, kind));
  }

  async createTable(kind) {
    await this.unprepared(scenario.keyspaces[kind], kind);
    await this.unprepared(scenario.table.create, kind);
    const table = await this.client.metadata.getTable(keyspaceOf(kind), "rows");
    const typeName = (type) => Object.entries(cassandra.types.dataTypes).find(([, code]) => code === type.code)[0];
    const columns = table.columns.map((column) => [column.name, typeName(column.type)]).sort();
    return {
      partition_key: table.partitionKeys.map((column) => column.name),
      clustering_key: table.clusteringKeys.map((column) => column.name),
      columns: Object.fromEntries(columns.map(([name, type]) => [name, type === "varchar" ? "text" : type])),
    };
  }

  async counted(action) {
    const before = await stats();
    const saw = await action();
    return { ...saw, before, after: await stats() };
  }

  /** `action` for each item, so many at a time; the first error is kept beside the count of good ones. */
  async concurrently(items, action) {
    let next = 0;
    let good = 0;
    let first;
    const worker = async () => {
      while (next < items.length) {
        try {
          const part = await action(items[next++]);
          good += part;
        } catch (error) {
          first ??= `${error.name}: ${error.message}`;
        }
      }
    };
    await Promise.all(Array.from({ length: scenario.concurrency }, worker));
    return [good, first ? { first_error: first } : {}];
  }

  async write(rows, kind) {
    const [written, error] = await this.concurrently(rows, async (values) => {
      await this.prepared("table", "insert", kind, values);
      return 1;
    });
    return { written, ...error };
  }

  async read(rows, kind) {
    const [same, error] = await this.concurrently(rows, async (values) => {
      const answer = await this.prepared("table", "select", kind, values.slice(0, 3));
      const read = answer.rows.map((line) => line.values());
      return read.length === 1 && read[0].every((value, index) => equal(value, values[index])) ? 1 : 0;
    });
    return { same, ...error };
  }

  async pages(rows, kind) {
    const cql = cqlOf(scenario.table.scan, kind);
    const key = ([region, id, slot]) => `${region} ${id} ${slot}`;
    const seen = new Set();
    let count = 0;
    let pages = 0;
    let longest = 0;
    let pageState;
    do {
      const page = await this.client.execute(cql, [], { fetchSize: scenario.page_size, pageState });
      pages += 1;
      longest = Math.max(longest, page.rows.length);
      count += page.rows.length;
      for (const line of page.rows) seen.add(key(line.values()));
      pageState = page.pageState;
    } while (pageState);
    const counted = await this.prepared("table", "count", kind, []);
    const known = rows.filter((values) => seen.has(key(values))).length;
    return { rows: count, known, pages, longest, count: counted.first().values()[0].toNumber() };
  }

  async one(part, kind, values) {
    const answer = await this.prepared(part, "select", kind, values);
    return answer.first().values().map(shown);
  }

  async collections(kind) {
    const part = scenario.collections;
    await this.unprepared(part.create, kind);
    const set = (items) => items && new Set(items);
    const map = (pairs) => pairs && new Map(pairs);
    for (const [id, numbers, words, counts, nested, pair] of part.rows) {
      const values = [id, numbers, set(words), map(counts), map(nested), pair && new Tuple(...pair)];
      await this.prepared("collections", "insert", kind, values);
    }
    const rows = [];
    for (const [id] of part.rows) rows.push(await this.one("collections", kind, [id]));
    const [numbers, words, counts, id] = part.appended;
    await this.prepared("collections", "append", kind, [numbers, set(words), map(counts), id]);
    return { rows, appended: await this.one("collections", kind, [id]) };
  }

  async udt(kind) {
    const part = scenario.udt;
    await this.unprepared(part.type, kind);
    await this.unprepared(part.create, kind);
    const type = await this.client.metadata.getUdt(keyspaceOf(kind), "address");
    const address = (fields) => fields && { ...fields, tags: fields.tags && new Set(fields.tags) };
    for (const [id, home, others] of part.rows) {
      await this.prepared("udt", "insert", kind, [id, address(home), others && others.map(address)]);
    }
    const rows = [];
    for (const [id] of part.rows) rows.push(await this.one("udt", kind, [id]));
    return { fields: type.fields.map((field) => field.name), rows };
  }

  async lwt(kind) {
    const part = scenario.lwt;
    await this.unprepared(part.create, kind);
    const steps = [];
    for (const [name, values] of part.steps) {
      const answer = await this.prepared("lwt", name, kind, values);
      const { "[applied]": applied, ...previous } = shown({ ...answer.first() });
      steps.push({ applied, previous });
    }
    return { steps, row: await this.one("lwt", kind, [1]) };
  }

  async batch(kind) {
    const part = scenario.batch;
    await this.unprepared(part.create, kind);
    await this.prepared("batch", "insert", kind, part.before);
    for (const name of ["logged", "unlogged"]) {
      const queries = part[name].map(([statement, params]) => ({ query: cqlOf(part[statement], kind), params }));
      await this.client.batch(queries, { prepare: true, logged: name === "logged" });
    }
    return { rows: await this.rowsOf("batch", [1, 2, 3], kind) };
  }

  async rowsOf(part, keys, kind) {
    const all = [];
    for (const key of keys) {
      const answer = await this.prepared(part, "select", kind, [key]);
      all.push(answer.rows.map((line) => line.values().map(shown)));
    }
    return all;
  }

  async counter(kind) {
    const part = scenario.counter;
    await this.unprepared(part.create, kind);
    const query = cqlOf(part.update, kind);
    for (let time = 0; time < part.times; time += 1) {
      await this.client.batch(
        part.batch.map((params) => ({ query, params })),
        { prepare: true, counter: true },
      );
    }
    const rows = await this.rowsOf("counter", [1, 2], kind);
    return { rows: rows.map(([first]) => first) };
  }

  async queries(kind) {
    const part = scenario.queries;
    for (const text of part.setup) await this.unprepared(text, kind);
    const saw = {};
    for (const [name, text] of Object.entries(part.selects)) {
      try {
        const answer = await this.unprepared(text, kind);
        const rows = answer.rows.map((line) => line.values().map(shown));
        saw[name] = { columns: answer.columns.map((column) => column.name), rows };
      } catch (error) {
        saw[name] = `${error.name}: ${error.message}`;
      }
    }
    return saw;
  }

  async errors(kind) {
    const before = await stats();
    const part = scenario.errors;
    const saw = {};
    const codeOf = async (name, action) => {
      try {
        await action();
        saw[name] = "no error";
      } catch (error) {
        saw[name] = error.code ?? `${error.name}: ${error.message}`;
      }
    };
    for (const [name, text] of Object.entries(part.statements)) {
      await codeOf(name, () => this.unprepared(text, kind));
    }
    for (const name of part.prepared) {
      await codeOf(`prepare ${name}`, () => this.client.execute(cqlOf(part.statements[name], kind), []));
    }
    return { ...saw, before };
  }
}

/** Whether a cell is what was bound. */
function equal(read, bound) {
  if (bound === null) return read === null;
  return typeof bound.equals === "function" ? bound.equals(read) : read === bound;
}

new Visit().run().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
