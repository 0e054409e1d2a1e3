// Points in time.

import type { Cells } from "../bytes.js";
import { Malformed, misfit, type Codec, type ValueOptions } from "./codec.js";
import { temporal } from "./temporal.js";

/** Milliseconds from 1970 that a `Date` can hold, either way. */
const DATE_MAX = 8.64e15;

function millis(cells: Cells, at: number): number {
  const value = Number(cells.view.getBigInt64(at));
  if (value > DATE_MAX || value < -DATE_MAX) {
    throw new Malformed(`a timestamp of ${cells.view.getBigInt64(at)} ms, which no Date holds; ask for it as "bigint"`);
  }
  return value;
}

/** `timestamp`. */
export function timestamp({ timestamp: form, temporal: isTemporal }: ValueOptions): Codec {
  const read = (cells: Cells, at: number) => cells.view.getBigInt64(at);
  return {
    type: "timestamp",
    size: 8,
    width: 8,
    put(writer, value) {
      const time = value instanceof Date ? value.getTime() : value.epochMilliseconds ?? value;
      if (typeof time === "bigint" && BigInt.asIntN(64, time) === time) writer.int64(time);
      else if (typeof time === "number" && Number.isSafeInteger(time)) writer.int64(BigInt(time));
      else misfit(value, "timestamp takes a valid Date, or milliseconds since 1970");
    },
    get: isTemporal ? (cells, at) => temporal("Instant").fromEpochMilliseconds(millis(cells, at)) : form === "bigint" ? read : form === "number" ? millis : (cells, at) => new Date(millis(cells, at)),
    array: form === "bigint"
      ? { make: (length) => new BigInt64Array(length), get: read }
      : { make: (length) => new Float64Array(length), get: millis },
  };
}
