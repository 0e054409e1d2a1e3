// Durations: months, days and nanoseconds, which do not convert into each other.

import { misfit, type Codec, type ValueOptions } from "./codec.js";
import { temporal } from "./temporal.js";
import { VintReader, putVint } from "./vint.js";

/** The units as CQL writes them and as ISO 8601 does, each with its part and its size there. */
const UNITS: Readonly<Record<string, readonly [part: 0 | 1 | 2, size: bigint]>> = {
  y: [0, 12n], mo: [0, 1n], w: [1, 7n], d: [1, 1n], h: [2, 3_600_000_000_000n], m: [2, 60_000_000_000n],
  s: [2, 1_000_000_000n], ms: [2, 1_000_000n], us: [2, 1000n], µs: [2, 1000n], ns: [2, 1n],
};

/** A duration. Its parts have one sign. */
export class Duration {
  static readonly name: string = "Duration";
  constructor(readonly months: number, readonly days: number, readonly nanoseconds: bigint) {
    const signs = new Set([Math.sign(months), Math.sign(days), nanoseconds > 0n ? 1 : nanoseconds < 0n ? -1 : 0]);
    const isWide = (months | 0) !== months || (days | 0) !== days || BigInt.asIntN(64, nanoseconds) !== nanoseconds;
    if (isWide || (signs.has(1) && signs.has(-1))) {
      throw new RangeError("a Duration has 32-bit months and days and 64-bit nanoseconds, all of one sign");
    }
  }

  /** Reads `1y2mo3d4h5m6s7ms8us9ns` or `P1Y2M3DT4H5M6.007S`. Throws a SyntaxError. */
  static parse(text: string): Duration {
    const [, sign, iso, rest = ""] = /^([+-]?)(P?)(.+)$/i.exec(text) ?? [];
    const parts: [bigint, bigint, bigint] = [0n, 0n, 0n];
    let isTime = !iso;
    const left = rest.replace(/T|(\d+)(?:\.(\d{1,9}))?([a-zµ]+?)(?=[\dT]|$)/gi, (all, whole, fraction = "", name) => {
      if (!whole) {
        if (isTime) return all;
        isTime = true;
        return "";
      }
      const unit = name.toLowerCase();
      const known = UNITS[unit === "m" && !isTime ? "mo" : unit];
      if (!known || (fraction && unit !== "s")) return all;
      parts[known[0]] += BigInt(whole) * known[1] + BigInt(fraction.padEnd(9, "0"));
      return "";
    });
    if (left !== "" || !rest) throw new SyntaxError(`no duration: ${text}`);
    const [months, days, nanoseconds] = parts.map((part) => (sign === "-" ? -part : part)) as typeof parts;
    return new Duration(Number(months), Number(days), nanoseconds);
  }

  /** As CQL writes it: `1y2mo3d4h5m6s7ms8us9ns`. */
  toString(): string {
    const parts = [BigInt(this.months), BigInt(this.days), this.nanoseconds];
    const isNegative = parts.some((part) => part < 0n);
    let text = "";
    for (const [name, [part, size]] of Object.entries(UNITS)) {
      if (name === "w" || name === "µs") continue;
      const left = parts[part]! < 0n ? -parts[part]! : parts[part]!;
      if (left >= size) text += `${left / size}${name}`;
      parts[part] = left % size;
    }
    return (isNegative ? "-" : "") + (text || "0s");
  }

  toJSON(): string {
    return this.toString();
  }
}

const fold = (value: bigint): bigint => BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
const unfold = (value: bigint): bigint => (value >> 1n) ^ -(value & 1n);

export const duration = ({ temporal: isTemporal }: ValueOptions): Codec => ({
  type: "duration",
  put(writer, value) {
    const given = value instanceof Duration ? value : parsed(value);
    for (const part of [given.months, given.days, given.nanoseconds]) putVint(writer, fold(BigInt(part)));
  },
  get(cells, at, end) {
    const reader = new VintReader(cells, at, end);
    const [months, days, nanoseconds] = [unfold(reader.next()), unfold(reader.next()), unfold(reader.next())];
    const value = new Duration(Number(months), Number(days), nanoseconds);
    if (!isTemporal) return value;
    const [seconds, rest] = [nanoseconds / 1_000_000_000n, nanoseconds % 1_000_000_000n];
    return temporal("Duration").from({ months: value.months, days: value.days, seconds: Number(seconds), nanoseconds: Number(rest) });
  },
});

function parsed(value: unknown): Duration {
  try {
    if (typeof value === "string" || (typeof value === "object" && `${value}`.startsWith("P"))) return Duration.parse(`${value}`);
  } catch {
    // Refused below.
  }
  return misfit(value, "duration takes a Duration, a Temporal.Duration, or a string like 1mo2d3h");
}
