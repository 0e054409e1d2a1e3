// Prepared statements.

import { Writer } from "./bytes.js";
import { CqlError } from "./error.js";
import type { Column, PreparedOutput } from "./module.js";
import { NO_OPTIONS, numbersOf, putOptions, type PageOptions, type RunOptions } from "./options.js";
import { pages } from "./pages.js";
import type { AnyRow, ColumnValues, Result } from "./result.js";
import type { Shell } from "./shell.js";
import { Misfit, type Codec } from "./values/codec.js";
import type { Types } from "./values/types.js";

/**
 * Values by position, or by the names of the markers. `null` writes null; `undefined`, and a name that is missing,
 * leaves the column as it is.
 */
export type Values = readonly unknown[] | { readonly [name: string]: unknown };

/** A statement that the server knows. */
export class Statement<Params = Values, Row = AnyRow> {
  static readonly name: string = "Statement";
  /** The bind markers. */
  declare readonly markers: readonly Column[];
  readonly #number: number;
  readonly #codecs: readonly Codec[];
  readonly #shell: Shell;

  /** @internal */
  constructor(shell: Shell, types: Types, { number, markers }: PreparedOutput) {
    this.#number = number;
    this.#codecs = markers.map(({ type }) => types.codec(type));
    this.markers = markers.map(({ name }, index) => ({ name, type: this.#codecs[index]!.type }));
    this.#shell = shell;
  }

  /** Runs it. */
  run(values?: Params, options: RunOptions = NO_OPTIONS): Promise<Result<Row>> {
    return this.#shell.request((module) => {
      const list = inOrder(this.markers, values ?? []);
      const { numbers, state } = numbersOf(options);
      const write = (writer: Writer) => {
        putOptions(writer, options, state);
        putValues(writer, this.markers, this.#codecs, list);
      };
      return module.callWith("execute", write, this.#number, list.length, ...numbers);
    }, options.signal ? { signal: options.signal } : undefined);
  }

  /** Writes it as a part of a batch. @internal */
  putInto(writer: Writer, values: unknown): void {
    const list = inOrder(this.markers, values ?? []);
    const encoded = new Writer();
    putValues(encoded, this.markers, this.#codecs, list);
    writer.int32(this.#number, true);
    writer.int32(list.length, true);
    writer.padded(encoded.written);
  }

  /** Runs it and gives the first row; null if there is none. */
  async one(values?: Params, options?: RunOptions): Promise<Row | null> {
    return (await this.run(values, options)).first;
  }

  /** Runs it and gives one column of the page; see {@link Result.column}. */
  async column<Column extends ColumnValues = ColumnValues>(name: string, values?: Params, options?: RunOptions): Promise<Column> {
    return (await this.run(values, options)).column<Column>(name);
  }

  /** Runs it page by page; see {@link Query.pages}. */
  pages(values?: Params, options: RunOptions & PageOptions = {}): AsyncIterableIterator<Result<Row>> {
    return pages((rest) => this.run(values, rest), options);
  }
}

/** Values in the order of the markers. */
function inOrder(markers: readonly Column[], values: unknown): readonly unknown[] {
  if (Array.isArray(values)) return values;
  // A Map or a Set would be an object without names, and nothing would be written.
  if (typeof values !== "object" || values === null || Symbol.iterator in values) {
    throw new CqlError("usage", `values are an array or an object of names, not ${values?.constructor.name ?? typeof values}`);
  }
  for (const name of Object.keys(values)) {
    if (!markers.some((marker) => marker.name === name)) {
      throw new CqlError("encode", `no marker is named ${name}; there are ${markers.map((marker) => marker.name).join(", ") || "none"}`);
    }
  }
  return markers.map(({ name }) => Object.hasOwn(values, name) ? (values as Record<string, unknown>)[name] : undefined);
}

/** Writes a value for each marker: null as null, undefined as unset. */
export function putValues(writer: Writer, markers: readonly Column[], codecs: readonly Codec[], values: readonly unknown[]): void {
  if (values.length !== markers.length) {
    throw new CqlError("encode", `${values.length} values for ${markers.length} markers`);
  }
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    const start = writer.length;
    writer.int32(value === undefined ? -2 : -1);
    if (value === undefined || value === null) continue;
    try {
      codecs[index]!.put(writer, value);
    } catch (error) {
      if (!(error instanceof Misfit)) throw error;
      const { name, type } = markers[index]!;
      throw new CqlError("encode", `value ${index} (${name} ${type})${error.path}: ${error.message}`);
    }
    writer.endValue(start);
  }
}
