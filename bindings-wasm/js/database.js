// What users hold: a database, its statements and their results.

import { CqlError } from "./error.js";
import { flagsOf } from "./module.js";
import { Shell } from "./shell.js";
import { Writer, putValues, valueAt } from "./values.js";

/** @typedef {import("./index.d.ts").RunOptions} RunOptions */
/** @typedef {import("./index.d.ts").Values} Values */

/**
 * Connects with settings for the module.
 *
 * @param {Record<string, unknown>} settings
 * @param {WebAssembly.Module} compiled
 * @param {import("./index.d.ts").Sockets} sockets
 * @param {AbortSignal} [signal]
 */
export async function open(settings, compiled, sockets, signal) {
  const texts = Object.entries(settings).filter(([, value]) => value !== undefined);
  const shell = new Shell(compiled, sockets);
  try {
    const named = Object.fromEntries(texts.map(([name, value]) => [name, value instanceof Uint8Array ? value : String(value)]));
    await shell.request((module) => module.start(named), signal);
  } catch (error) {
    shell.end(new CqlError("usage", "connecting failed", { cause: error }));
    throw error;
  }
  return new Database(shell);
}

export class Database {
  #shell;
  /** @type {FinalizationRegistry<number>} */
  #dropped;

  /** @param {Shell} shell */
  constructor(shell) {
    this.#shell = shell;
    this.#dropped = new FinalizationRegistry((number) => shell.tell((module) => module.release(number)));
  }

  /** @param {string} text @param {{ signal?: AbortSignal }} [options] */
  async prepare(text, { signal } = {}) {
    const bytes = new TextEncoder().encode(text);
    const { statement } = await this.#shell.request((module) => module.callWith("prepare", bytes), signal);
    if (!statement) throw new CqlError("bug", "nothing was prepared");
    const prepared = new Statement(this.#shell, statement.number, statement.markers);
    this.#dropped.register(prepared, statement.number);
    return prepared;
  }

  /** @param {string} text @param {Values} [values] @param {RunOptions} [options] */
  async query(text, values = [], options = {}) {
    if (!Array.isArray(values) || values.length > 0) {
      return (await this.prepare(text, options)).run(values, options);
    }
    const writer = new Writer();
    const numbers = putOptions(writer, options);
    writer.bytes(new TextEncoder().encode(text));
    const { rows } = await this.#shell.request(
      (module) => module.callWith("query", writer.written, ...numbers),
      options.signal,
    );
    return new Result(rows);
  }

  /**
   * Runs statements as one request: prepared ones with values, and texts without.
   *
   * @param {readonly (string | [Statement, Values])[]} statements
   * @param {RunOptions & { type?: "logged" | "unlogged" | "counter" }} [options]
   */
  async batch(statements, options = {}) {
    const writer = new Writer();
    const numbers = putOptions(writer, options);
    for (const statement of statements) {
      if (typeof statement === "string") putPart(writer, 0xffff_ffff, 0, new TextEncoder().encode(statement));
      else statement[0].putInto(writer, statement[1]);
    }
    const kind = ["logged", "unlogged", "counter"].indexOf(options.type ?? "logged");
    const { rows } = await this.#shell.request((module) => module.callWith("batch", writer.written, kind, ...numbers), options.signal);
    return new Result(rows);
  }

  /** What a later session may begin with. @param {number} [lengthMax] */
  warmStart(lengthMax = 65536) {
    return this.#shell.ask((module) => module.warmStart(lengthMax));
  }

  /** What is known of the cluster. @param {number} [tabletsMax] */
  cluster(tabletsMax = 256) {
    return this.#shell.ask((module) => module.cluster(tabletsMax));
  }

  async close() {
    const closed = new CqlError("usage", "the database is closed");
    try {
      await this.#shell.request((module) => module.call("close"));
    } finally {
      this.#shell.end(closed);
    }
  }

  // Older runtimes lack the symbol.
  [/** @type {any} */ (Symbol).asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    return this.close();
  }
}

export class Statement {
  #shell;
  #number;

  /** @param {Shell} shell @param {number} number @param {import("./index.d.ts").Column[]} markers */
  constructor(shell, number, markers) {
    this.#shell = shell;
    this.#number = number;
    this.markers = markers;
  }

  /** @param {Values} values @returns {readonly unknown[]} */
  #listed(values) {
    return Array.isArray(values)
      ? values
      : this.markers.map(({ name }) => /** @type {Record<string, unknown>} */ (values)[name]);
  }

  /** As part of a batch. @param {Writer} writer @param {Values} values */
  putInto(writer, values) {
    const list = this.#listed(values);
    const encoded = new Writer();
    putValues(encoded, this.markers, list);
    putPart(writer, this.#number, list.length, encoded.written);
  }

  /** @param {Values} [values] @param {RunOptions} [options] */
  async run(values = [], options = {}) {
    const list = this.#listed(values);
    const writer = new Writer();
    const numbers = putOptions(writer, options);
    putValues(writer, this.markers, list);
    const { rows } = await this.#shell.request(
      (module) => module.callWith("execute", writer.written, this.#number, list.length, ...numbers),
      options.signal,
    );
    return new Result(rows);
  }
}

/** Rows of one page. Values are made when they are asked for. */
export class Result {
  #cells;
  #table;

  /** @param {import("./module.js").ResultOutput} [rows] */
  constructor(rows) {
    this.columns = rows?.columns ?? [];
    this.length = rows?.length ?? 0;
    this.pagingState = rows?.pagingState;
    this.warnings = rows?.warnings ?? [];
    this.applied = rows?.applied;
    this.host = rows?.host;
    this.shard = rows?.shard;
    this.#cells = rows?.cells ?? new DataView(new ArrayBuffer(0));
    this.#table = rows?.table ?? new Uint32Array();
  }

  /** @param {number} row @param {number} column */
  value(row, column) {
    return valueAt(this.#cells, this.#table[row * this.columns.length + column], this.columns[column]);
  }

  /** @param {number} row */
  row(row) {
    return Object.fromEntries(this.columns.map(({ name }, column) => [name, this.value(row, column)]));
  }

  rows() {
    return Array.from(this);
  }

  /** @param {string} name */
  column(name) {
    const column = this.columns.findIndex((held) => held.name === name);
    if (column < 0) throw new CqlError("usage", `no column named ${name}`);
    return Array.from({ length: this.length }, (_, row) => this.value(row, column));
  }

  *[Symbol.iterator]() {
    for (let row = 0; row < this.length; row++) yield this.row(row);
  }
}

/**
 * Writes the timestamp and the paging state, and tells the other options as numbers.
 *
 * @param {Writer} writer
 * @param {RunOptions} options
 */
function putOptions(writer, options) {
  const { timeout = 0, pageSize = 0, pagingState, timestamp } = options;
  if (timestamp !== undefined) writer.long(timestamp);
  if (pagingState) writer.bytes(pagingState);
  return [timeout, pageSize, flagsOf(options), pagingState?.length ?? 0];
}

/** @param {Writer} writer @param {number} statement @param {number} count @param {Uint8Array} bytes */
function putPart(writer, statement, count, bytes) {
  for (const word of [statement, count, bytes.length]) writer.int32(word, true);
  writer.bytes(bytes);
  writer.bytes(new Uint8Array(-bytes.length & 3));
}
