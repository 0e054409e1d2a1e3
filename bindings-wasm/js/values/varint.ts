// Integers without bounds, and decimal numbers made of one and a scale.

import type { Cells, Writer } from "../bytes.js";
import { misfit, type Codec, type ValueOptions } from "./codec.js";
import { inForm, wholeNumber } from "./numbers.js";
import { hexOf } from "./texts.js";

/** Writes the fewest bytes of two's complement. */
function putVarint(writer: Writer, value: bigint): void {
  const digits = (value < 0n ? ~value : value).toString(16);
  // The sign takes a bit, which half of all first digits leave free.
  const size = (digits.length + (digits[0]! > "7" ? 2 : 1)) >> 1;
  const hex = BigInt.asUintN(size * 8, value).toString(16).padStart(size * 2, "0");
  for (let at = 0; at < hex.length; at += 2) writer.int8(parseInt(hex.slice(at, at + 2), 16));
}

function varintAt({ bytes }: Cells, at: number, end: number): bigint {
  return BigInt.asIntN((end - at) * 8, BigInt(`0x${hexOf(bytes, at, end) || 0}`));
}

export const varint = (form: ValueOptions["bigint"]): Codec => ({
  type: "varint",
  put: (writer, value) => putVarint(writer, wholeNumber(value, "varint")),
  get: (cells, at, end) => inForm(varintAt(cells, at, end), form, "varint"),
});

const DECIMAL = /^([+-]?\d*)(?:\.(\d*))?(?:e([+-]?\d{1,10}))?$/i;

/** A decimal number: `unscaled` divided by ten to the power of `scale`, so 1.50 and 1.5 are told apart. */
export class Decimal {
  static readonly name: string = "Decimal";
  constructor(readonly unscaled: bigint, readonly scale: number) {
    if (typeof unscaled !== "bigint" || (scale | 0) !== scale) throw new RangeError("a Decimal has a bigint and a 32-bit scale");
  }

  /** Reads digits as `1.50` or `-15e3`. Throws a SyntaxError. */
  static parse(text: string): Decimal {
    const [, whole = "", fraction = "", exponent = "0"] = DECIMAL.exec(text) ?? [];
    if (!/\d/.test(whole + fraction)) throw new SyntaxError(`no decimal number: ${text}`);
    return new Decimal(BigInt(whole + fraction), fraction.length - Number(exponent));
  }

  /** All digits; with an exponent where zeros would be many. */
  toString(): string {
    const sign = this.unscaled < 0n ? "-" : "";
    const digits = this.unscaled.toString().slice(sign.length);
    const exponent = digits.length - 1 - this.scale;
    if (this.scale < 0 || exponent < -6) {
      const [first, rest] = [digits.slice(0, 1), digits.slice(1)];
      return `${sign}${first}${rest && `.${rest}`}E${exponent < 0 ? "" : "+"}${exponent}`;
    }
    if (this.scale === 0) return sign + digits;
    const padded = digits.padStart(this.scale + 1, "0");
    return `${sign}${padded.slice(0, -this.scale)}.${padded.slice(-this.scale)}`;
  }

  toJSON(): string {
    return this.toString();
  }

  /** The nearest number. */
  toNumber(): number {
    return Number(this.toString());
  }
}

export const decimal = (form: ValueOptions["decimal"]): Codec => ({
  type: "decimal",
  put(writer, value) {
    let given = value;
    if (typeof value === "bigint" || typeof value === "number" || typeof value === "string") {
      try {
        given = Decimal.parse(String(value));
      } catch {
        // Refused below.
      }
    }
    if (!(given instanceof Decimal)) misfit(value, "decimal takes a Decimal, digits as a string, a bigint or a finite number");
    writer.int32(given.scale);
    putVarint(writer, given.unscaled);
  },
  get(cells, at, end) {
    const value = new Decimal(varintAt(cells, at + 4, end), cells.view.getInt32(at));
    return form === "string" ? value.toString() : value;
  },
});
