// Numbers of fixed size, booleans.

import type { Cells, Writer } from "../bytes.js";
import { misfit, type Codec, type TypedColumn, type ValueOptions } from "./codec.js";

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

function integer(type: string, bits: 8 | 16 | 32, make: (length: number) => TypedColumn): Codec {
  const max = 2 ** (bits - 1);
  const get = (cells: Cells, at: number): number =>
    bits === 32 ? cells.view.getInt32(at) : bits === 16 ? cells.view.getInt16(at) : cells.view.getInt8(at);
  return {
    type,
    size: bits / 8,
    put(writer, value) {
      if (!Number.isInteger(value) || value < -max || value >= max) {
        misfit(value, `${type} takes integers from ${-max} to ${max - 1}`);
      }
      if (bits === 32) writer.int32(value);
      else if (bits === 16) writer.int16(value);
      else writer.int8(value);
    },
    get,
    array: { make, get },
  };
}

export const tinyint = integer("tinyint", 8, (length) => new Int8Array(length));
export const smallint = integer("smallint", 16, (length) => new Int16Array(length));
export const int: Codec = {
  ...integer("int", 32, (length) => new Int32Array(length)),
  width: 4,
  get: (cells, at) => cells.view.getInt32(at),
  array: { make: (length) => new Int32Array(length), get: (cells, at) => cells.view.getInt32(at) },
};

function floating(type: string, size: number, codec: Pick<Required<Codec>, "array" | "get"> & { write(writer: Writer, value: number): void }): Codec {
  return {
    type,
    size,
    width: size,
    put(writer, value) {
      if (typeof value !== "number") misfit(value, `${type} takes numbers`);
      codec.write(writer, value);
    },
    get: codec.get,
    array: codec.array,
  };
}

export const float = floating("float", 4, {
  write: (writer, value) => writer.float32(value),
  get: (cells, at) => cells.view.getFloat32(at),
  array: { make: (length) => new Float32Array(length), get: (cells, at) => cells.view.getFloat32(at) },
});

export const double = floating("double", 8, {
  write: (writer, value) => writer.float64(value),
  get: (cells, at) => cells.view.getFloat64(at),
  array: { make: (length) => new Float64Array(length), isPlain: true, get: (cells, at) => cells.view.getFloat64(at) },
});

export const boolean: Codec = {
  type: "boolean",
  size: 1,
  width: 1,
  put(writer, value) {
    if (typeof value !== "boolean") misfit(value, "boolean takes true and false");
    writer.int8(value ? 1 : 0);
  },
  get: (cells, at) => cells.bytes[at] !== 0,
};

/** An integer of any of the forms that users write: bigint, a safe number, or decimal digits. */
export function wholeNumber(value: unknown, type: string): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value === "string" && /^[+-]?\d+$/.test(value)) return BigInt(value);
  return misfit(value, `${type} takes bigints, safe integers and their digits as a string`);
}

/** A bigint in the form that the options ask for. */
export function inForm(value: bigint, form: ValueOptions["bigint"], type: string): bigint | number | string {
  if (form === "string") return value.toString();
  if (form !== "number") return value;
  if (value > MAX_SAFE || value < -MAX_SAFE) {
    throw new RangeError(`${type} ${value} is no safe integer; ask for it as "bigint" or "string"`);
  }
  return Number(value);
}

/** `bigint` and `counter`. */
export function long(type: string, form: ValueOptions["bigint"]): Codec {
  const read = (cells: Cells, at: number) => cells.view.getBigInt64(at);
  const formed = (cells: Cells, at: number) => inForm(cells.view.getBigInt64(at), form, type);
  return {
    type,
    size: 8,
    width: type === "bigint" ? 8 : undefined,
    put(writer, value) {
      const whole = wholeNumber(value, type);
      if (BigInt.asIntN(64, whole) !== whole) misfit(value, `${type} takes 64-bit integers`);
      writer.int64(whole);
    },
    get: form === undefined || form === "bigint" ? read : formed,
    array: form === "string" ? undefined
      : form === "number" ? { make: (length) => new Float64Array(length), get: formed as (cells: Cells, at: number) => number }
      : { make: (length) => new BigInt64Array(length), isPlain: true, get: read },
  };
}
