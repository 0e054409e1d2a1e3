// What every type's codec has, and how it refuses.

import type { Cells, Writer } from "../bytes.js";

/** Writes and reads the values of one CQL type, without the length in front. */
export interface Codec {
  /** The type as CQL writes it. */
  readonly type: string;
  /** Bytes of every value, where that is fixed. */
  readonly size?: number | undefined;
  /** Bytes of every element of a vector; undefined where elements carry their lengths. */
  readonly width?: number | undefined;
  /** Whether no bytes are a value; elsewhere they read as null. */
  readonly hasEmpty?: boolean;
  /** Writes a value that is neither null nor undefined. Throws a {@link Misfit}. */
  put(writer: Writer, value: any): void;
  /** Makes the value of the bytes from `at` to `end`. Throws a {@link Malformed}. */
  get(cells: Cells, at: number, end: number): any;
  /** An array for a whole column that holds numbers without boxes. */
  readonly array?: ArrayKind | undefined;
}

/** A typed array and how one of its elements is read. */
export interface ArrayKind {
  make(length: number): TypedColumn;
  /** Whether its elements are the bytes of the cells, the other way round. */
  readonly isPlain?: boolean;
  get(cells: Cells, at: number): number | bigint;
}

export type TypedColumn =
  | Int8Array | Int16Array | Int32Array | Float32Array | Float64Array | BigInt64Array | Uint8Array;

/** Why a value cannot be written. */
export class Misfit extends Error {
  /** Where in a collection or object it stands. */
  path = "";
}

/** Why bytes are no value. */
export class Malformed extends Error {}

/** Refuses a value. */
export function misfit(value: unknown, wanted: string): never {
  throw new Misfit(`${wanted}, not ${shown(value)}`);
}

/** A value as an error message shows it: its kind, and its text if that is short. */
function shown(value: unknown): string {
  if (typeof value === "string") return `the string ${JSON.stringify(cut(value))}`;
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return `${typeof value} ${value}`;
  if (typeof value !== "object" || value === null) return String(typeof value === "symbol" ? "a symbol" : typeof value);
  const name = value.constructor?.name;
  return !name || name === "Object" ? "an object" : `${/^[AEIOU]/.test(name) ? "an" : "a"} ${name}`;
}

function cut(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

/** How values are made where there is a choice. */
export interface ValueOptions {
  /** `bigint`, `counter` and `varint`; `"number"` throws for what a number cannot hold. */
  readonly bigint?: "bigint" | "number" | "string";
  /** `decimal`: the class `Decimal`, or its text. */
  readonly decimal?: "Decimal" | "string";
  /** `timestamp`: a `Date`, or milliseconds since 1970 (the whole range of CQL only as `"bigint"`). */
  readonly timestamp?: "Date" | "number" | "bigint";
  /** `blob`: a copy, or a view that keeps the whole page in memory. */
  readonly blob?: "copy" | "view";
  /** `map`: a `Map`, or a plain object if the keys are text. */
  readonly map?: "Map" | "object";
  /** `Temporal` objects for timestamp, date, time and duration, in runtimes that have them. */
  readonly temporal?: boolean;
}
