// One instance of the WebAssembly module: calls in, outputs out.
//
// Knows the layout of `src/message.rs` and nothing of sockets or promises. A trap comes out as a
// CqlError, with the text of the panic where the module keeps texts; after it the instance must not be called again.

import { Cells, Writer } from "./bytes.js";
import { CqlError, type CqlErrorKind } from "./error.js";
import type { CompiledModule, ShardWish } from "./hosts/host.js";
import type { Shape, Types } from "./values/types.js";

/** Why a link failed, by the numbers of `src/instance.rs`. */
const LINK_ERRORS = ["other", "resolve", "refused", "reset", "unreachable", "timeout", "tls", "forbidden"];

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

/** How a statement ended, and its rows as they came. */
export interface ResultOutput {
  readonly attempts: number;
  readonly host: string | undefined;
  readonly shard: number | undefined;
  /** Of a conditional statement. */
  readonly applied: boolean | undefined;
  readonly warnings: readonly string[];
  readonly tracingId: Uint8Array | undefined;
  readonly shape: Shape;
  readonly pagingState: Uint8Array | undefined;
  readonly length: number;
  /** Where the cells stand, row by row; nobody has walked them yet. */
  readonly cells: Cells;
  readonly start: number;
  readonly end: number;
}

/** What the module wants of the network. */
export type LinkEffect =
  | { readonly do: "connect"; readonly link: number; readonly host: string; readonly port: number; readonly wish: ShardWish }
  | { readonly do: "send"; readonly link: number; readonly bytes: Uint8Array }
  | { readonly do: "close" | "abort"; readonly link: number };

/** Takes how a request ended. */
export interface Settler {
  /** A statement was run. */
  ran(request: number, result: ResultOutput): void;
  /** Something else was done. */
  did(request: number, statement: PreparedOutput | undefined): void;
  failed(request: number, error: CqlError): void;
}

interface Exports {
  readonly memory: WebAssembly.Memory;
  tick(now: number, wall: number): void;
  input(length: number): number;
  incoming(length: number): number;
  feed(link: number): void;
  link_sent(link: number, length: number): number;
  outputs(): number;
  panic_message(): number;
  outputs_len(): number;
  readonly [name: string]: unknown;
}

/** Or none. */
const NONE = 0xffff_ffff;

/** Reads words and byte strings of the module, as long as its memory stays as it is. */
export class Reader {
  declare readonly cells: Cells;
  at = 0;

  constructor(cells: Cells) {
    this.cells = cells;
  }

  /** A copy of all that follows. */
  rest(): Uint8Array {
    return this.cells.bytes.slice(this.at);
  }

  get isAtEnd(): boolean {
    return this.at >= this.cells.bytes.length;
  }

  word(): number {
    this.at += 4;
    return this.cells.view.getUint32(this.at - 4, true);
  }

  number(): number {
    this.at += 8;
    return this.cells.view.getFloat64(this.at - 8, true);
  }

  /** A word, or undefined where there is none. */
  maybe(): number | undefined {
    const word = this.word();
    return word === NONE ? undefined : word;
  }

  long(): bigint {
    this.at += 8;
    return this.cells.view.getBigInt64(this.at - 8, true);
  }

  /** A copy. */
  bytes(): Uint8Array {
    return this.view().slice();
  }

  text(): string {
    return decoder.decode(this.view());
  }

  /** Bytes where they stand. */
  view(): Uint8Array {
    const at = this.skip();
    return this.cells.bytes.subarray(at, at + this.cells.view.getUint32(at - 4, true));
  }

  /** Goes past a byte string; tells where it begins. */
  skip(): number {
    const length = this.word();
    const at = this.at;
    this.at += (length + 3) & ~3;
    return at;
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

const NOTHING = new Uint8Array(0);
const NO_CELLS = new Cells(NOTHING);
const NO_WARNINGS: readonly string[] = [];

/** Outputs up to this length are copied as a whole, and what is kept of them keeps that copy. */
const WHOLE_MAX = 64 << 10;

export class Module {
  readonly #exports: Exports;
  /** Columns told last for each statement. */
  readonly #shapes: (Shape | undefined)[] = [];
  readonly #noColumns: Shape;
  /** Where each node is. */
  readonly #nodes: (string | undefined)[] = [];
  readonly #types: Types;
  readonly #input = new Writer((size) => {
    const at = this.call("input", size);
    return new Uint8Array(this.#exports.memory.buffer, at, size);
  });
  /** All of the module's memory; without bytes when it has moved. */
  #memory = NOTHING;

  constructor(compiled: CompiledModule, types: Types) {
    this.#exports = new WebAssembly.Instance(compiled).exports as unknown as Exports;
    this.#types = types;
    this.#noColumns = types.shape([]);
  }

  /** Tells the time that it is now. */
  tick(): void {
    this.#exports.tick(performance.now(), Date.now());
  }

  /** Calls an export. */
  call(name: string, ...numbers: number[]): number {
    try {
      return (this.#exports[name] as (...numbers: number[]) => number)(...numbers);
    } catch (cause) {
      throw this.#trap(cause);
    }
  }

  /** Calls an export with what `write` writes. Whatever else that does, it has written all when the call is made. */
  callWith(name: string, write: (writer: Writer) => void, ...numbers: number[]): number {
    return this.call(name, this.#write(write), ...numbers);
  }

  /** Writes the input of a call; tells its length. */
  #write(write: (writer: Writer) => void): number {
    const input = this.#input;
    const turn = input.begin();
    write(input);
    if (input.turn === turn) return input.length;
    // A getter or the like has made another request meanwhile, in the same room.
    const apart = new Writer();
    write(apart);
    input.begin();
    input.bytes(apart.written);
    return input.length;
  }

  /** Bytes came from a link. */
  feed(link: number, bytes: Uint8Array): void {
    try {
      const at = this.#exports.incoming(bytes.length);
      this.#whole().set(bytes, at);
      this.#exports.feed(link);
    } catch (cause) {
      throw this.#trap(cause);
    }
  }

  /** The network has taken bytes; whether that was waited for. */
  sent(link: number, length: number): boolean {
    return this.call("link_sent", link, length) !== 0;
  }

  #whole(): Uint8Array {
    // A buffer that has moved is left without bytes.
    if (this.#memory.length === 0) this.#memory = new Uint8Array(this.#exports.memory.buffer);
    return this.#memory;
  }

  #trap(cause: unknown): CqlError {
    return new CqlError("bug", this.#panicText() || String(cause), { cause, applied: true });
  }

  /** Begins a session. */
  start(settings: Readonly<Record<string, string | Uint8Array>>): number {
    return this.callWith("start", (writer) => {
      for (const part of Object.entries(settings).flat()) writer.field(part);
    }, ...crypto.getRandomValues(new Uint32Array(2)));
  }

  linkFailed(link: number, reason: string): void {
    this.call("link_failed", link, Math.max(LINK_ERRORS.indexOf(reason), 0));
  }

  /** Forgets a statement. */
  release(statement: number): void {
    this.#shapes[statement] = undefined;
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

  /** Lets every task run, and tells which requests ended. Gives the time of the next tick, and what the links need. */
  outputs(settler: Settler): { deadline: number; effects: LinkEffect[] } {
    const at = this.call("outputs");
    const length = this.#exports.outputs_len();
    const memory = this.#whole();
    // Much of it is copied piece by piece, so that a result does not keep everything that came with it.
    const isWhole = length <= WHOLE_MAX;
    const reader = new Reader(new Cells(isWhole ? memory.slice(at, at + length) : memory.subarray(at, at + length)));
    const deadline = reader.number();
    const effects: LinkEffect[] = [];
    while (reader.at < length) {
      const what = reader.word();
      this.#read(what, reader.word(), reader, isWhole, settler, effects);
    }
    return { deadline, effects };
  }

  #told(name: string, number: number): Reader {
    const at = this.call(name, number);
    return new Reader(new Cells(this.#whole().subarray(at, at + this.#exports.outputs_len())));
  }

  /** An output, by its number in `src/message.rs`. */
  #read(what: number, number: number, reader: Reader, isWhole: boolean, settler: Settler, effects: LinkEffect[]): void {
    switch (what) {
      case 1: {
        const [host, port, shard, of, localPort] = [reader.text(), reader.word(), reader.maybe(), reader.word(), reader.word()];
        const wish = { ...(shard === undefined ? {} : { shard, of }), ...(localPort && { localPort }) };
        effects.push({ do: "connect", link: number, host, port, wish });
        return;
      }
      case 2:
        effects.push({ do: "send", link: number, bytes: isWhole ? reader.view() : reader.bytes() });
        return;
      case 3:
        effects.push({ do: "close", link: number });
        return;
      case 4:
        effects.push({ do: "abort", link: number });
        return;
      case 5: return settler.did(number, undefined);
      case 6: {
        const [statement, , markers] = [reader.word(), reader.word(), reader.columns()];
        return settler.did(number, { number: statement, markers });
      }
      case 7: return settler.ran(number, this.#readResult(reader, isWhole));
      case 8: return settler.failed(number, this.#readError(reader));
      case 9:
        this.#nodes[number] = reader.text();
        return;
      default: throw new CqlError("bug", `output ${what}`);
    }
  }

  #readResult(reader: Reader, isWhole: boolean): ResultOutput {
    const bits = reader.word(), node = reader.word(), shard = reader.maybe(), statement = reader.maybe();
    let shape = statement === undefined ? undefined : this.#shapes[statement];
    if (bits & COLUMNS) {
      shape = this.#types.shape(reader.columns());
      if (statement !== undefined) this.#shapes[statement] = shape;
    }
    const pagingState = bits & PAGING ? reader.bytes() : undefined;
    const warnings = bits & WARNINGS ? reader.list(() => reader.text()) : NO_WARNINGS;
    const tracingId = bits & TRACED ? reader.bytes() : undefined;
    const applied = bits & CONDITIONAL ? (bits & APPLIED) !== 0 : undefined;
    let cells = NO_CELLS, length = 0, start = 0, end = 0;
    if (bits & ROWS) {
      length = reader.word();
      if (isWhole) {
        cells = reader.cells;
        start = reader.skip();
        end = start + cells.view.getUint32(start - 4, true);
      } else {
        cells = new Cells(reader.bytes());
        end = cells.bytes.length;
      }
    } else {
      shape = this.#noColumns;
    }
    return {
      attempts: bits & ATTEMPTS, host: this.#nodes[node], shard, applied, warnings, tracingId, shape: shape ?? this.#noColumns,
      pagingState, length, cells, start, end,
    };
  }

  #readError(reader: Reader): CqlError {
    const kind = reader.text() as CqlErrorKind;
    const [code, bits, node, shard, attempts] = [reader.word(), reader.word(), reader.maybe(), reader.maybe(), reader.word()];
    const message = reader.text();
    const details = Object.fromEntries(reader.list(() => [reader.text(), readFact(reader)]));
    const host = node === undefined ? undefined : this.#nodes[node];
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
