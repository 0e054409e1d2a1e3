// One instance of the WebAssembly module: calls in, outputs out.
//
// Knows the layout of `src/message.rs` and nothing of sockets or promises. A trap comes out as a
// CqlError with the text of the panic; after it the instance must not be called again.

import { Cells, Writer } from "./bytes.js";
import { CqlError, type CqlErrorKind } from "./error.js";

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
  readonly markers: readonly Column[];
}

/** Rows as they came. */
export interface RowsOutput {
  readonly columns: readonly Column[];
  readonly pagingState: Uint8Array | undefined;
  readonly warnings: readonly string[];
  readonly length: number;
  /** Where each cell begins in `cells`, row by row. */
  readonly table: Uint32Array;
  readonly cells: Cells;
}

/** How a request ended. */
export interface Settled {
  readonly error?: CqlError;
  readonly statement?: PreparedOutput;
  readonly rows?: RowsOutput;
}

/** What the module wants to be done. */
export type Effect =
  | { readonly do: "connect"; readonly link: number; readonly host: string; readonly port: number }
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

/** Reads words and byte strings in the module's memory. What is kept must be copied. */
class Reader {
  readonly #view: DataView;
  readonly #bytes: Uint8Array;
  at = 0;

  constructor(buffer: ArrayBuffer, start: number, length: number) {
    this.#view = new DataView(buffer, start, length);
    this.#bytes = new Uint8Array(buffer, start, length);
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

  /** A copy. */
  bytes(): Uint8Array<ArrayBuffer> {
    const length = this.word();
    this.at += length;
    return this.#bytes.slice(this.at - length, this.at);
  }

  text(): string {
    const length = this.word();
    this.at += length;
    return decoder.decode(this.#bytes.subarray(this.at - length, this.at));
  }

  list<T>(item: () => T): T[] {
    return Array.from({ length: this.word() }, item);
  }

  columns(): Column[] {
    return this.list(() => ({ name: this.text(), type: this.text() }));
  }
}

/** How each output is read, by its number in `src/message.rs`. */
const OUTPUTS: ((reader: Reader, number: number) => Effect)[] = [
  (_, number) => { throw new CqlError("bug", `output ${number}`); },
  (reader, link) => ({ do: "connect", link, host: reader.text(), port: reader.word() }),
  (reader, link) => ({ do: "send", link, bytes: reader.bytes() }),
  (_, link) => ({ do: "close", link }),
  (_, link) => ({ do: "abort", link }),
  (_, request) => ({ do: "settle", request, outcome: {} }),
  (reader, request) => {
    const statement = { number: reader.word(), markers: reader.columns() };
    return { do: "settle", request, outcome: { statement } };
  },
  (reader, request) => ({ do: "settle", request, outcome: { rows: readRows(reader) } }),
  (reader, request) => ({ do: "settle", request, outcome: { error: readError(reader) } }),
];

function readRows(reader: Reader): RowsOutput {
  const columns = reader.columns();
  const hasMore = reader.word() === 1;
  const pagingState = reader.bytes();
  const warnings = reader.list(() => reader.text());
  const length = reader.word();
  const table = new Uint32Array(reader.bytes().buffer);
  const cells = new Cells(reader.bytes());
  return { columns, pagingState: hasMore ? pagingState : undefined, warnings, length, table, cells };
}

function readError(reader: Reader): CqlError {
  const kind = reader.text() as CqlErrorKind;
  const [code, applied] = [reader.word(), reader.word() === 1];
  return new CqlError(kind, reader.text(), { code, applied });
}

export class Module {
  readonly #exports: Exports;

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
  start(settings: Readonly<Record<string, string>>): number {
    const writer = new Writer();
    for (const part of Object.entries(settings).flat()) writer.field(part);
    return this.callWith("start", writer.written, ...crypto.getRandomValues(new Uint32Array(2)));
  }

  linkFailed(link: number, reason: string): void {
    this.call("link_failed", link, Math.max(LINK_ERRORS.indexOf(reason), 0));
  }

  /** Lets every task run, and reads what it wants. */
  outputs(): { deadline: number; effects: Effect[] } {
    const at = this.call("outputs");
    const reader = new Reader(this.#exports.memory.buffer, at, this.#exports.outputs_len());
    const deadline = reader.number();
    const effects: Effect[] = [];
    while (!reader.isAtEnd) {
      const read = OUTPUTS[reader.word()] ?? OUTPUTS[0]!;
      effects.push(read(reader, reader.word()));
    }
    return { deadline, effects };
  }

  #panicText(): string {
    const at = this.#exports.panic_message();
    const length = new DataView(this.#exports.memory.buffer).getUint32(at, true);
    return decoder.decode(new Uint8Array(this.#exports.memory.buffer, at + 4, length));
  }
}
