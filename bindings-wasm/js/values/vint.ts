// Variable-length integers: the parts of durations, the lengths of a vector's elements.
//
// As many bytes follow the first as it has leading ones; what is left of it comes before them.

import type { Cells, Writer } from "../bytes.js";
import { Malformed } from "./codec.js";

/** Writes an unsigned number below 2^64. */
export function putVint(writer: Writer, value: bigint): void {
  let extra = 0;
  while (extra < 8 && value >> BigInt(7 * (extra + 1))) extra++;
  const front = extra === 8 ? 0 : Number(value >> BigInt(8 * extra));
  writer.int8(((0xff00 >> extra) & 0xff) | front);
  while (extra--) writer.int8(Number((value >> BigInt(8 * extra)) & 0xffn));
}

/** Reads numbers one after the other, none beyond `end`. */
export class VintReader {
  constructor(readonly cells: Cells, public at: number, readonly end: number) {}

  next(): bigint {
    const first = this.at < this.end ? this.cells.bytes[this.at]! : 255;
    const extra = Math.clz32(~(first << 24));
    if (this.at + extra >= this.end) throw new Malformed("too few bytes");
    let value = BigInt(first & (0xff >> extra));
    for (let left = extra; left > 0; left--) value = (value << 8n) | BigInt(this.cells.bytes[++this.at]!);
    this.at++;
    return value;
  }
}
