// One page of rows. Values are made when they are asked for.

import { CqlError } from "./error.js";
import type { Column, ResultOutput } from "./module.js";
import { urlText } from "./options.js";
import { valueOf } from "./values/collections.js";
import { Malformed, type TypedColumn } from "./values/codec.js";
import { uuidText } from "./values/texts.js";

/** A row, if nothing is known of its columns. */
export type AnyRow = Record<string, any>;

/** What `column` gives: a typed array where every value is there and the type has one, else an array. */
export type ColumnValues = TypedColumn | any[];

/** Rows of one page. Values are made when they are asked for, and not kept. */
export class Result<Row = AnyRow> implements Iterable<Row> {
  static readonly name: string = "Result";
  readonly #rows: ResultOutput;
  /** Where each cell begins, row by row, once that is needed. */
  #table: Uint32Array | undefined;

  /** @internal */
  constructor(rows: ResultOutput) {
    this.#rows = rows;
  }

  get columns(): readonly Column[] {
    return this.#rows.shape.columns;
  }

  /** Number of rows. */
  get length(): number {
    return this.#rows.length;
  }

  get warnings(): readonly string[] {
    return this.#rows.warnings;
  }

  /** Where the next page begins, as text that may be handed to a user; undefined if this was the last one. */
  get pagingState(): string | undefined {
    const state = this.#rows.pagingState;
    return state && urlText(state);
  }

  /** The first row; null if there is none. */
  get first(): Row | null {
    return this.length > 0 ? this.#firstRow() : null;
  }

  /** Whether a conditional statement (`IF ..`) was applied; undefined for others. */
  get applied(): boolean | undefined {
    return this.#rows.applied;
  }

  /** The node that answered. */
  get host(): string | undefined {
    return this.#rows.host;
  }

  /** The shard of that node. */
  get shard(): number | undefined {
    return this.#rows.shard;
  }

  /** How often the request was sent. */
  get attempts(): number {
    return this.#rows.attempts;
  }

  /** The id of the trace that was asked for. */
  get tracingId(): string | undefined {
    const id = this.#rows.tracingId;
    return id && uuidText(id, 0);
  }

  /** The value in a row's column, both by their place. */
  value(row: number, column: number): any {
    const width = this.columns.length;
    if (!(row >= 0 && row < this.length && column >= 0 && column < width)) {
      throw new CqlError("usage", `no value at row ${row}, column ${column}: ${this.length} rows of ${width} columns`);
    }
    return this.#values(column, row, row + 1)[0];
  }

  /** A row as an object. */
  row(index: number): Row {
    if (!(index >= 0 && index < this.length)) throw new CqlError("usage", `no row ${index} of ${this.length}`);
    return index === 0 ? this.#firstRow() : this.#objects(index, index + 1)[0]!;
  }

  /** All rows as objects. */
  rows(): Row[] {
    return this.length === 1 ? [this.#firstRow()] : this.#objects(0, this.length);
  }

  /**
   * All values of one column, without making rows: an Int32Array of `int`, a BigInt64Array of `bigint` and so on, if
   * no value is null; else an array, with null for null. `nulls` gives a number to stand for null, so that numbers
   * always come in a typed array. Timestamps are milliseconds since 1970 in a Float64Array.
   */
  column<Values extends ColumnValues = ColumnValues>(name: string, { nulls }: { nulls?: number | bigint } = {}): Values {
    const column = this.columns.findIndex((held) => held.name === name);
    if (column < 0) {
      throw new CqlError("usage", `no column ${name}; there are ${this.columns.map((held) => held.name).join(", ") || "none"}`);
    }
    const typed = this.#typed(column, nulls);
    if (typed) return typed as Values;
    return this.#values(column, 0, this.length) as Values;
  }

  toJSON(): Row[] {
    return this.rows();
  }

  /** What Node, Deno and Bun print. */
  [Symbol.for("nodejs.util.inspect.custom")](): object {
    const { length, applied, host, shard, pagingState, warnings } = this;
    return { length, applied, host, shard, pagingState, warnings, rows: this.#objects(0, Math.min(length, 10)) };
  }

  *[Symbol.iterator](): IterableIterator<Row> {
    // In groups: making rows together is faster, and whoever stops early has not paid for all.
    for (let from = 0; from < this.length; from += ROWS_TOGETHER) {
      yield* this.#objects(from, Math.min(from + ROWS_TOGETHER, this.length));
    }
  }

  /** The first row, without a table. */
  #firstRow(): Row {
    const { shape, cells, start, end } = this.#rows;
    const { codecs, names } = shape;
    if (shape.isOdd) return this.#objects(0, 1)[0]!;
    const { view } = cells;
    const object = new shape.Row();
    let column = 0;
    try {
      for (let at = start; column < codecs.length; column++) {
        const length = lengthAt(view, at, end);
        at += 4;
        const codec = codecs[column]!;
        object[names[column]!] = length < 0 ? null
          : length === codec.size ? codec.get(cells, at, at + length) : valueOf(codec, cells, at, at + length);
        if (length > 0) at += length;
      }
    } catch (cause) {
      throw this.#malformed(column, cause);
    }
    return object as Row;
  }

  #objects(from: number, to: number): Row[] {
    const { names, isOdd, Row } = this.#rows.shape;
    const width = names.length;
    const rows = new Array<Row>(to - from);
    const values = names.map(() => new Array<unknown>(Math.min(ROWS_TOGETHER, to - from)));
    // Column by column, so that one type is decoded many times, and in groups that stay in the cache.
    for (let start = from; start < to; start += ROWS_TOGETHER) {
      const end = Math.min(start + ROWS_TOGETHER, to);
      for (let column = 0; column < width; column++) this.#values(column, start, end, values[column]!);
      for (let row = start; row < end; row++) {
        const object = new Row();
        for (let column = 0; column < width; column++) {
          const value = values[column]![row - start];
          if (isOdd) Object.defineProperty(object, names[column]!, { value, enumerable: true, writable: true, configurable: true });
          else object[names[column]!] = value;
        }
        rows[row - from] = object as Row;
      }
    }
    return rows;
  }

  /** Walks the cells. */
  #places(): Uint32Array {
    if (this.#table) return this.#table;
    const { shape, length, cells: { view }, start, end } = this.#rows;
    const count = length * shape.columns.length;
    // Before memory is taken for a number that the server chose.
    if (count * 4 > end - start) early();
    const table = new Uint32Array(count);
    let at = start;
    for (let place = 0; place < count; place++) {
      table[place] = at;
      at += 4 + Math.max(lengthAt(view, at, end), 0);
    }
    return (this.#table = table);
  }

  /** The values of a column in the rows `from` to `to`. */
  #values(column: number, from: number, to: number, values = new Array<any>(to - from)): any[] {
    const { shape, cells } = this.#rows;
    const { view } = cells;
    const codec = shape.codecs[column]!;
    const width = shape.columns.length;
    let place = from * width + column;
    try {
      const table = this.#places();
      for (let row = 0; row < to - from; row++, place += width) {
        const at = table[place]! + 4;
        const length = view.getInt32(at - 4);
        values[row] = length < 0 ? null : length === codec.size ? codec.get(cells, at, at + length) : valueOf(codec, cells, at, at + length);
      }
      return values;
    } catch (cause) {
      throw this.#malformed(column, cause);
    }
  }

  /** A column without boxes; undefined if it holds a null that nothing stands for. */
  #typed(column: number, nulls: number | bigint | undefined): TypedColumn | undefined {
    const { shape, cells, length: count } = this.#rows;
    const codec = shape.codecs[column]!;
    const { array, size } = codec;
    if (!array) return undefined;
    const { view } = cells;
    const width = shape.columns.length;
    let place = column;
    try {
      const table = this.#places();
      const values = array.make(count);
      // Bits that only have to be turned round go without a function for each, and without boxes.
      const words = array.isPlain && size === 8 ? new Int32Array(values.buffer) : undefined;
      for (let row = 0; row < count; row++, place += width) {
        const at = table[place]! + 4;
        const length = view.getInt32(at - 4);
        if (length === size) {
          if (words) {
            words[row * 2 + HIGH] = view.getInt32(at);
            words[row * 2 + LOW] = view.getInt32(at + 4);
          } else {
            values[row] = array.get(cells, at);
          }
        } else if (length > 0) {
          throw new Malformed(`${length} bytes`);
        } else if (nulls === undefined) {
          return undefined;
        } else {
          values[row] = nulls;
        }
      }
      return values;
    } catch (cause) {
      throw this.#malformed(column, cause);
    }
  }

  #malformed(column: number, cause: unknown): unknown {
    const isOurs = cause instanceof Malformed || cause instanceof RangeError;
    const { name, type } = this.columns[column]!;
    return isOurs ? new CqlError("decode", `column ${name} ${type}: ${cause.message}`, { cause }) : cause;
  }
}

/** Rows that iteration makes at once. */
const ROWS_TOGETHER = 64;

/** Where the halves of 64 bits stand in a typed array of this machine. */
const LOW = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? 0 : 1;
const HIGH = 1 - LOW;

/** The length of the cell at `at`, which ends before `end`; negative for null. */
function lengthAt(view: DataView, at: number, end: number): number {
  const length = at + 4 > end ? early() : view.getInt32(at);
  return at + 4 + length > end ? early() : length;
}

function early(): never {
  throw new Malformed("the rows end too early");
}
