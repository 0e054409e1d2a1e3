// One instance of the WebAssembly module: calls in, outputs out.
//
// Knows the layout of `src/message.rs` and nothing of sockets or promises. A trap comes out as a
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

  bytes() {
    const length = this.word();
    this.at += length;
    return new Uint8Array(this.view.buffer, this.at - length, length);
  }

  text() {
    return decoder.decode(this.bytes());
  }

  columns() {
    return Array.from({ length: this.word() }, () => ({ name: this.text(), type: this.text() }));
  }
}

/**
 * @typedef {{ do: "connect", link: number, host: string, port: number }
 *   | { do: "send", link: number, bytes: Uint8Array }
 *   | { do: "close" | "abort", link: number }
 *   | { do: "settle", request: number, error?: CqlError, statement?: PreparedOutput, rows?: RowsOutput }} Effect
 * @typedef {{ number: number, markers: import("./index.d.ts").Column[] }} PreparedOutput
 * @typedef {{ columns: import("./index.d.ts").Column[], pagingState: Uint8Array | undefined, warnings: string[],
 *   length: number, table: Uint32Array, cells: DataView }} RowsOutput
 */

/** How each output is read, by its number in `src/message.rs`. @type {((reader: Reader, number: number) => Effect)[]} */
const OUTPUTS = [
  (_, number) => { throw new CqlError("bug", `output ${number}`); },
  (reader, link) => ({ do: "connect", link, host: reader.text(), port: reader.word() }),
  (reader, link) => ({ do: "send", link, bytes: reader.bytes() }),
  (_, link) => ({ do: "close", link }),
  (_, link) => ({ do: "abort", link }),
  (_, request) => ({ do: "settle", request }),
  (reader, request) => ({ do: "settle", request, statement: { number: reader.word(), markers: reader.columns() } }),
  (reader, request) => ({ do: "settle", request, rows: readRows(reader) }),
  (reader, request) => ({ do: "settle", request, error: readError(reader) }),
];

/** @param {Reader} reader @returns {RowsOutput} */
function readRows(reader) {
  const columns = reader.columns();
  const hasMore = reader.word() === 1;
  const pagingState = reader.bytes().slice();
  const warnings = Array.from({ length: reader.word() }, () => reader.text());
  const length = reader.word();
  // Copies, so that a result does not keep everything else that came with it.
  const table = new Uint32Array(reader.bytes().slice().buffer);
  const cells = new DataView(reader.bytes().slice().buffer);
  return { columns, pagingState: hasMore ? pagingState : undefined, warnings, length, table, cells };
}

/** @param {Reader} reader */
function readError(reader) {
  const kind = /** @type {import("./index.d.ts").CqlErrorKind} */ (reader.text());
  const [code, applied] = [reader.word(), reader.word() === 1];
  return new CqlError(kind, reader.text(), { code, applied });
}

export class Module {
  #exports;

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

  /** Begins a session. @param {Record<string, string>} settings */
  start(settings) {
    const writer = new Writer();
    for (const part of Object.entries(settings).flat()) {
      const bytes = encoder.encode(part);
      writer.int32(bytes.length, true);
      writer.bytes(bytes);
    }
    return this.callWith("start", writer.written, ...crypto.getRandomValues(new Uint32Array(2)));
  }

  /** @param {number} link @param {string} reason */
  linkFailed(link, reason) {
    this.call("link_failed", link, Math.max(LINK_ERRORS.indexOf(reason), 0));
  }

  /** Lets every task run, and reads what it wants. */
  outputs() {
    const at = this.call("outputs");
    const buffer = this.#exports.memory.buffer.slice(at, at + this.#exports.outputs_len());
    const reader = new Reader(buffer);
    const deadline = reader.number();
    const effects = [];
    while (reader.at < buffer.byteLength) effects.push(OUTPUTS[reader.word()](reader, reader.word()));
    return { deadline, effects };
  }

  #panicText() {
    const at = this.#exports.panic_message();
    const length = new DataView(this.#exports.memory.buffer).getUint32(at, true);
    return decoder.decode(new Uint8Array(this.#exports.memory.buffer, at + 4, length));
  }
}
