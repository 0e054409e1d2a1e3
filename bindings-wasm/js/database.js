// What users hold: a database, its statements and their results.

import { CqlError } from "./error.js";
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
    const named = Object.fromEntries(texts.map(([name, value]) => [name, String(value)]));
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
    this.#dropped = new FinalizationRegistry((number) => shell.tell((module) => module.call("release", number)));
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

  /** @param {Values} [values] @param {RunOptions} [options] */
  async run(values = [], options = {}) {
    const list = Array.isArray(values)
      ? values
      : this.markers.map(({ name }) => /** @type {Record<string, unknown>} */ (values)[name]);
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

  /** @param {import("./module.js").RowsOutput} [rows] */
  constructor(rows) {
    this.columns = rows?.columns ?? [];
    this.length = rows?.length ?? 0;
    this.pagingState = rows?.pagingState;
    this.warnings = rows?.warnings ?? [];
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
 * Writes the paging state and tells the other options as numbers.
 *
 * @param {Writer} writer
 * @param {RunOptions} options
 */
function putOptions(writer, { timeout = 0, pageSize = 0, pagingState, idempotent = false }) {
  if (pagingState) writer.bytes(pagingState);
  return [timeout, pageSize, writer.length, idempotent ? 1 : 0];
}
