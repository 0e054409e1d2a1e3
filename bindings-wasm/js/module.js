// One instance of the WebAssembly module: calls in, outputs out.
//
// Knows the layout of `src/message.rs` (of the cluster's picture: `src/cluster.rs`) and nothing of sockets or promises. A trap comes out as a
// CqlError with the text of the panic; after it the instance must not be called again.

import { CqlError } from "./error.js";
import { Writer } from "./values.js";

/** Why a link failed, by the numbers of `src/instance.rs`. */
const LINK_ERRORS = ["other", "resolve", "refused", "reset", "unreachable", "timeout", "tls"];

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Reads words and byte strings. */
class Reader {
  at = 0;

  /** @param {ArrayBuffer} buffer */
  constructor(buffer) {
    this.view = new DataView(buffer);
  }

  word() {
    this.at += 4;
    return this.view.getUint32(this.at - 4, true);
  }

  number() {
    this.at += 8;
    return this.view.getFloat64(this.at - 8, true);
  }

  /** A word, or undefined where there is none. */
  maybe() {
    const word = this.word();
    return word === NONE ? undefined : word;
  }

  bytes() {
    const length = this.word();
    const at = this.at;
    this.at += (length + 3) & ~3;
    return new Uint8Array(this.view.buffer, at, length);
  }

  text() {
    return decoder.decode(this.bytes());
  }

  long() {
    this.at += 8;
    return this.view.getBigInt64(this.at - 8, true);
  }

  /** @template T @param {() => T} read @returns {T[]} */
  list(read) {
    return Array.from({ length: this.word() }, read);
  }

  columns() {
    return this.list(() => ({ name: this.text(), type: this.text() }));
  }
}

/**
 * @typedef {{ do: "connect", link: number, host: string, port: number, wish: Wish }
 *   | { do: "send", link: number, bytes: Uint8Array }
 *   | { do: "close" | "abort", link: number }
 *   | { do: "settle", request: number, error?: CqlError, statement?: PreparedOutput, rows?: ResultOutput }} Effect
 * @typedef {{ shard?: number, of: number, sourcePort: number }} Wish a shard to reach, or the source port to bind, 0 for any
 * @typedef {{ number: number, isConditional: boolean, isTokenAware: boolean, markers: import("./index.d.ts").Column[] }} PreparedOutput
 * @typedef {{ attempts: number, node: number, host: string | undefined, shard: number | undefined, applied: boolean | undefined,
 *   warnings: string[], tracingId: Uint8Array | undefined, hasRows: boolean, columns: import("./index.d.ts").Column[],
 *   pagingState: Uint8Array | undefined, length: number, table: Uint32Array, cells: DataView }} ResultOutput
 */

/** Or none. */
const NONE = 0xffff_ffff;

/** Bits of a result, `src/result.rs`. */
const BITS = { rows: 1 << 8, columns: 1 << 9, paging: 1 << 10, warnings: 1 << 11, conditional: 1 << 12, applied: 1 << 13, traced: 1 << 14 };

/** Bits of a request's flags, `src/options.rs`. */
const FLAGS = { idempotent: 1, timestamp: 2, traced: 4 };

/** By their numbers in the protocol. */
const LEVELS = ["ANY", "ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_QUORUM", "EACH_QUORUM", "SERIAL", "LOCAL_SERIAL", "LOCAL_ONE"];

const NO_TABLE = new Uint32Array();
const NO_CELLS = new DataView(new ArrayBuffer(0));

/**
 * What the parameters of a request say that is not in its input. A level that is none is refused.
 *
 * @param {{ idempotent?: boolean, traced?: boolean, timestamp?: bigint, consistency?: string, serialConsistency?: string }} options
 */
export function flagsOf({ idempotent, traced, timestamp, consistency, serialConsistency }) {
  const level = consistency === undefined ? 0 : LEVELS.indexOf(consistency) + 1;
  const serial = serialConsistency === undefined ? 0 : ["SERIAL", "LOCAL_SERIAL"].indexOf(serialConsistency) + 1;
  if (consistency !== undefined && level === 0) throw new CqlError("usage", `no consistency level ${consistency}`);
  if (serialConsistency !== undefined && serial === 0) throw new CqlError("usage", `no serial level ${serialConsistency}`);
  return (idempotent ? FLAGS.idempotent : 0) | (timestamp === undefined ? 0 : FLAGS.timestamp)
    | (traced ? FLAGS.traced : 0) | (level << 8) | (serial << 16);
}

export class Module {
  #exports;
  /** Columns told last for each statement. @type {Map<number, import("./index.d.ts").Column[]>} */
  #columns = new Map();
  /** Where each node is. @type {Map<number, string>} */
  #nodes = new Map();

  /** @param {WebAssembly.Module} compiled */
  constructor(compiled) {
    this.#exports = /** @type {any} */ (new WebAssembly.Instance(compiled).exports);
  }

  /**
   * Calls an export at the time that it is now.
   * @param {string} name
   * @param {...number} numbers
   * @returns {number}
   */
  call(name, ...numbers) {
    try {
      this.#exports.tick(performance.now(), Date.now());
      return this.#exports[name](...numbers);
    } catch (cause) {
      throw new CqlError("bug", this.#panicText() || String(cause), { cause, applied: true });
    }
  }

  /** The same with bytes that the export reads. @param {string} name @param {Uint8Array} bytes @param {...number} numbers */
  callWith(name, bytes, ...numbers) {
    const at = this.call("input", bytes.length);
    new Uint8Array(this.#exports.memory.buffer, at, bytes.length).set(bytes);
    return this.call(name, ...numbers);
  }

  /** Begins a session. @param {Record<string, string | Uint8Array>} settings */
  start(settings) {
    const writer = new Writer();
    for (const part of Object.entries(settings).flat()) {
      const bytes = typeof part === "string" ? encoder.encode(part) : part;
      writer.int32(bytes.length, true);
      writer.bytes(bytes);
    }
    return this.callWith("start", writer.written, ...crypto.getRandomValues(new Uint32Array(2)));
  }

  /** Forgets a statement. @param {number} statement */
  release(statement) {
    this.#columns.delete(statement);
    this.call("release", statement);
  }

  /** What a later session may begin with; empty if nothing is known. @param {number} lengthMax */
  warmStart(lengthMax) {
    return this.#told("warm_start", lengthMax);
  }

  /** What is known of the cluster, so many tablets of each table included; undefined without a session. @param {number} tabletsMax */
  cluster(tabletsMax) {
    const bytes = this.#told("cluster", tabletsMax);
    return bytes.length === 0 ? undefined : readCluster(new Reader(bytes.buffer));
  }

  /** @param {number} link @param {string} reason */
  linkFailed(link, reason) {
    this.call("link_failed", link, Math.max(LINK_ERRORS.indexOf(reason), 0));
  }

  /** Lets every task run, and reads what it wants. */
  outputs() {
    const { buffer } = this.#told("outputs");
    const reader = new Reader(buffer);
    const deadline = reader.number();
    /** @type {Effect[]} */
    const effects = [];
    while (reader.at < buffer.byteLength) {
      const effect = this.#read(reader.word(), reader.word(), reader);
      if (effect) effects.push(effect);
    }
    return { deadline, effects };
  }

  /** Copies what an export tells. @param {string} name @param {...number} numbers */
  #told(name, ...numbers) {
    const at = this.call(name, ...numbers);
    return new Uint8Array(this.#exports.memory.buffer.slice(at, at + this.#exports.outputs_len()));
  }

  /** An output, by its number in `src/message.rs`. @param {number} what @param {number} number @param {Reader} reader @returns {Effect | undefined} */
  #read(what, number, reader) {
    switch (what) {
      case 1: {
        const [host, port] = [reader.text(), reader.word()];
        return { do: "connect", link: number, host, port, wish: { shard: reader.maybe(), of: reader.word(), sourcePort: reader.word() } };
      }
      case 2: return { do: "send", link: number, bytes: reader.bytes() };
      case 3: return { do: "close", link: number };
      case 4: return { do: "abort", link: number };
      case 5: return { do: "settle", request: number };
      case 6: {
        const [statement, bits] = [reader.word(), reader.word()];
        const markers = reader.columns();
        return { do: "settle", request: number, statement: { number: statement, isConditional: (bits & 1) !== 0, isTokenAware: (bits & 2) !== 0, markers } };
      }
      case 7: return { do: "settle", request: number, rows: this.#readResult(reader) };
      case 8: return { do: "settle", request: number, error: this.#readError(reader) };
      case 9: {
        this.#nodes.set(number, reader.text());
        return undefined;
      }
      default: throw new CqlError("bug", `output ${what}`);
    }
  }

  /** @param {Reader} reader @returns {ResultOutput} */
  #readResult(reader) {
    const bits = reader.word();
    const node = reader.word();
    const [shard, statement] = [reader.maybe(), reader.maybe()];
    let columns = statement === undefined ? undefined : this.#columns.get(statement);
    if (bits & BITS.columns) {
      columns = reader.columns();
      if (statement !== undefined) this.#columns.set(statement, columns);
    }
    const pagingState = bits & BITS.paging ? reader.bytes().slice() : undefined;
    const warnings = bits & BITS.warnings ? reader.list(() => reader.text()) : [];
    const tracingId = bits & BITS.traced ? reader.bytes().slice() : undefined;
    const hasRows = (bits & BITS.rows) !== 0;
    const length = hasRows ? reader.word() : 0;
    // Copies, so that a result does not keep everything else that came with it.
    const table = hasRows ? new Uint32Array(reader.bytes().slice().buffer) : NO_TABLE;
    const cells = hasRows ? new DataView(reader.bytes().slice().buffer) : NO_CELLS;
    return {
      attempts: bits & 0xff, node, host: this.#nodes.get(node), shard,
      applied: bits & BITS.conditional ? (bits & BITS.applied) !== 0 : undefined,
      warnings, tracingId, hasRows, columns: hasRows && columns ? columns : [], pagingState, length, table, cells,
    };
  }

  /** @param {Reader} reader */
  #readError(reader) {
    const kind = /** @type {import("./index.d.ts").CqlErrorKind} */ (reader.text());
    const [code, bits, node, shard, attempts] = [reader.word(), reader.word(), reader.maybe(), reader.maybe(), reader.word()];
    const message = reader.text();
    const details = Object.fromEntries(reader.list(() => [reader.text(), readFact(reader)]));
    const host = node === undefined ? undefined : this.#nodes.get(node);
    return new CqlError(kind, message, {
      code, applied: (bits & 1) !== 0, transient: (bits & 2) !== 0, host, shard, attempts, details,
    });
  }

  #panicText() {
    const at = this.#exports.panic_message();
    const length = new DataView(this.#exports.memory.buffer).getUint32(at, true);
    return decoder.decode(new Uint8Array(this.#exports.memory.buffer, at + 4, length));
  }
}

/** @param {Reader} reader */
function readFact(reader) {
  const tag = reader.word();
  if (tag === 1) return reader.text();
  return tag === 0 ? reader.word() | 0 : reader.word() === 1;
}

/** @param {Reader} reader */
function readCluster(reader) {
  const [reached, missed, connects, prepared] = [reader.number(), reader.number(), reader.number(), reader.word()];
  const nodes = reader.list(() => ({
    node: reader.word(),
    hostId: uuidOf(reader.bytes()),
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

/** @param {Uint8Array} bytes */
function uuidOf(bytes) {
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
