// One instance of the WebAssembly module: calls in, outputs out.
//
// Knows the layout of `src/message.rs` and nothing of sockets or promises. A trap comes out as a
// CqlError, with the text of the panic where the module keeps texts; after it the instance must not be called again.

import { Cells, Writer } from "./bytes.js";
import { CqlError, type CqlErrorKind } from "./error.js";
import type { ShardWish } from "./hosts/host.js";

/** Why a link failed, by the numbers of `src/instance.rs`. */
const LINK_ERRORS = ["other", "resolve", "refused", "reset", "unreachable", "timeout", "tls"];

const decoder = new TextDecoder();

/** A column or a bind marker. */
export interface Column {
  readonly name: string;
  /** The CQL type, as CQL writes it. */
  readonly type: string;
}

/** What was prepared. */
export interface PreparedOutput {
  readonly number: number;
  readonly isConditional: boolean;
  readonly isTokenAware: boolean;
  readonly markers: readonly Column[];
}

/** How a statement ended, and its rows as they came. */
export interface ResultOutput {
  readonly attempts: number;
  readonly host: string | undefined;
  readonly shard: number | undefined;
  /** Of a conditional statement. */
  readonly applied: boolean | undefined;
  readonly warnings: readonly string[];
  readonly tracingId: Uint8Array | undefined;
  readonly columns: readonly Column[];
  readonly pagingState: Uint8Array | undefined;
  readonly length: number;
  /** Where each cell begins in `cells`, row by row. */
  readonly table: Uint32Array;
  readonly cells: Cells;
}

/** How a request ended. */
export interface Settled {
  readonly error?: CqlError;
  readonly statement?: PreparedOutput;
  readonly result?: ResultOutput;
}

/** What the module wants to be done. */
export type Effect =
  | { readonly do: "connect"; readonly link: number; readonly host: string; readonly port: number; readonly wish: ShardWish }
  | { readonly do: "send"; readonly link: number; readonly bytes: Uint8Array }
  | { readonly do: "close" | "abort"; readonly link: number }
  | { readonly do: "settle"; readonly request: number; readonly outcome: Settled };

interface Exports {
  readonly memory: WebAssembly.Memory;
  tick(now: number, wall: number): void;
  panic_message(): number;
  outputs_len(): number;
  readonly [name: string]: unknown;
}

/** Or none. */
const NONE = 0xffff_ffff;

/** Reads words and byte strings in the module's memory. */
export class Reader {
  readonly #view: DataView;
  readonly #bytes: Uint8Array;
  at = 0;

  constructor(buffer: ArrayBuffer, start: number, length: number) {
    this.#view = new DataView(buffer, start, length);
    this.#bytes = new Uint8Array(buffer, start, length);
  }

  /** A copy of all that follows. */
  rest(): Uint8Array {
    return this.#bytes.slice(this.at);
  }

  get isAtEnd(): boolean {
    return this.at >= this.#bytes.length;
  }

  word(): number {
    this.at += 4;
    return this.#view.getUint32(this.at - 4, true);
  }

  number(): number {
    this.at += 8;
    return this.#view.getFloat64(this.at - 8, true);
  }

  /** A word, or undefined where there is none. */
  maybe(): number | undefined {
    const word = this.word();
    return word === NONE ? undefined : word;
  }

  long(): bigint {
    this.at += 8;
    return this.#view.getBigInt64(this.at - 8, true);
  }

  /** A copy: the module uses its memory again, and a result does not keep everything else that came with it. */
  bytes(): Uint8Array<ArrayBuffer> {
    return this.#next().slice();
  }

  text(): string {
    return decoder.decode(this.#next());
  }

  #next() {
    const length = this.word();
    const at = this.at;
    this.at += (length + 3) & ~3;
    return this.#bytes.subarray(at, at + length);
  }

  list<T>(item: () => T): T[] {
    return Array.from({ length: this.word() }, item);
  }

  columns(): Column[] {
    return this.list(() => ({ name: this.text(), type: this.text() }));
  }
}

/** Bits of a result, `src/result.rs`. */
const ATTEMPTS = 0xff, ROWS = 1 << 8, COLUMNS = 1 << 9, PAGING = 1 << 10, WARNINGS = 1 << 11, CONDITIONAL = 1 << 12,
  APPLIED = 1 << 13, TRACED = 1 << 14;

export const NO_RESULT: ResultOutput = {
  attempts: 0, host: undefined, shard: undefined, applied: undefined, warnings: [], tracingId: undefined, columns: [],
  pagingState: undefined, length: 0, table: new Uint32Array(), cells: new Cells(new Uint8Array()),
};

export class Module {
  readonly #exports: Exports;
  /** Columns told last for each statement. */
  readonly #columns = new Map<number, readonly Column[]>();
  /** Where each node is. */
  readonly #nodes = new Map<number, string>();

  constructor(compiled: WebAssembly.Module) {
    this.#exports = new WebAssembly.Instance(compiled).exports as unknown as Exports;
  }

  /** Calls an export at the time that it is now. */
  call(name: string, ...numbers: number[]): number {
    try {
      this.#exports.tick(performance.now(), Date.now());
      return (this.#exports[name] as (...numbers: number[]) => number)(...numbers);
    } catch (cause) {
      throw new CqlError("bug", this.#panicText() || String(cause), { cause, applied: true });
    }
  }

  /** The same with bytes that the export reads. */
  callWith(name: string, bytes: Uint8Array, ...numbers: number[]): number {
    const at = this.call("input", bytes.length);
    new Uint8Array(this.#exports.memory.buffer, at, bytes.length).set(bytes);
    return this.call(name, ...numbers);
  }

  /** Begins a session. */
  start(settings: Readonly<Record<string, string | Uint8Array>>): number {
    const writer = new Writer();
    for (const part of Object.entries(settings).flat()) writer.field(part);
    return this.callWith("start", writer.written, ...crypto.getRandomValues(new Uint32Array(2)));
  }

  linkFailed(link: number, reason: string): void {
    this.call("link_failed", link, Math.max(LINK_ERRORS.indexOf(reason), 0));
  }

  /** Forgets a statement. */
  release(statement: number): void {
    this.#columns.delete(statement);
    this.call("release", statement);
  }

  /** What a later session may begin with; empty if nothing is known or it would be longer. */
  warmStart(lengthMax: number): Uint8Array {
    return this.#told("warm_start", lengthMax).rest();
  }

  /** Where the picture of the cluster stands, with so many tablets of each table. */
  cluster(tabletsMax: number): Reader {
    return this.#told("cluster", tabletsMax);
  }

  /** Lets every task run, and reads what it wants. */
  outputs(): { deadline: number; effects: Effect[] } {
    const reader = this.#told("outputs");
    const deadline = reader.number();
    const effects: Effect[] = [];
    while (!reader.isAtEnd) {
      const [what, number] = [reader.word(), reader.word()];
      if (what === 9) this.#nodes.set(number, reader.text());
      else effects.push(this.#read(what, number, reader));
    }
    return { deadline, effects };
  }

  #told(name: string, number = 0): Reader {
    const at = this.call(name, number);
    return new Reader(this.#exports.memory.buffer, at, this.#exports.outputs_len());
  }

  /** An output, by its number in `src/message.rs`. */
  #read(what: number, number: number, reader: Reader): Effect {
    const settle = (outcome: Settled): Effect => ({ do: "settle", request: number, outcome });
    switch (what) {
      case 1: {
        const [host, port, shard, of, localPort] = [reader.text(), reader.word(), reader.maybe(), reader.word(), reader.word()];
        return { do: "connect", link: number, host, port, wish: { ...(shard === undefined ? {} : { shard, of }), ...(localPort && { localPort }) } };
      }
      case 2: return { do: "send", link: number, bytes: reader.bytes() };
      case 3: return { do: "close", link: number };
      case 4: return { do: "abort", link: number };
      case 5: return settle({});
      case 6: {
        const [statement, bits, markers] = [reader.word(), reader.word(), reader.columns()];
        return settle({ statement: { number: statement, isConditional: (bits & 1) !== 0, isTokenAware: (bits & 2) !== 0, markers } });
      }
      case 7: return settle({ result: this.#readResult(reader) });
      case 8: return settle({ error: this.#readError(reader) });
      default: throw new CqlError("bug", `output ${what}`);
    }
  }

  #readResult(reader: Reader): ResultOutput {
    const [bits, node, shard, statement] = [reader.word(), reader.word(), reader.maybe(), reader.maybe()];
    let columns = statement === undefined ? undefined : this.#columns.get(statement);
    if (bits & COLUMNS) {
      columns = reader.columns();
      if (statement !== undefined) this.#columns.set(statement, columns);
    }
    const pagingState = bits & PAGING ? reader.bytes() : undefined;
    const warnings = bits & WARNINGS ? reader.list(() => reader.text()) : [];
    const tracingId = bits & TRACED ? reader.bytes() : undefined;
    const rows = bits & ROWS
      ? { columns: columns ?? [], length: reader.word(), table: new Uint32Array(reader.bytes().buffer), cells: new Cells(reader.bytes()) }
      : {};
    const applied = bits & CONDITIONAL ? (bits & APPLIED) !== 0 : undefined;
    return { ...NO_RESULT, attempts: bits & ATTEMPTS, host: this.#nodes.get(node), shard, applied, warnings, tracingId, pagingState, ...rows };
  }

  #readError(reader: Reader): CqlError {
    const kind = reader.text() as CqlErrorKind;
    const [code, bits, node, shard, attempts] = [reader.word(), reader.word(), reader.maybe(), reader.maybe(), reader.word()];
    const message = reader.text();
    const details = Object.fromEntries(reader.list(() => [reader.text(), readFact(reader)]));
    const host = node === undefined ? undefined : this.#nodes.get(node);
    return new CqlError(kind, message, { code, applied: (bits & 1) !== 0, transient: (bits & 2) !== 0, host, shard, attempts, details });
  }

  #panicText(): string {
    const at = this.#exports.panic_message();
    const length = new DataView(this.#exports.memory.buffer).getUint32(at, true);
    return decoder.decode(new Uint8Array(this.#exports.memory.buffer, at + 4, length));
  }
}

function readFact(reader: Reader): string | number | boolean {
  const tag = reader.word();
  if (tag === 1) return reader.text();
  return tag === 0 ? reader.word() | 0 : reader.word() === 1;
}
