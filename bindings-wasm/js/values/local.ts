// Dates and times of day that belong to no zone.

import { misfit, type Codec, type ValueOptions } from "./codec.js";
import { temporal } from "./temporal.js";

const DAY_NANOS = 86_400_000_000_000n;

/** Days of 400 years, after which the calendar repeats. */
const ERA = 146_097;

const pad = (value: number | bigint, length: number): string => String(value).padStart(length, "0");

/** A date of the calendar. CQL has those within 2^31 days of 1970. */
export class LocalDate {
  static readonly name: string = "LocalDate";
  /** Days since 1970-01-01. */
  constructor(readonly days: number) {
    if ((days | 0) !== days) throw new RangeError("a LocalDate has 32-bit days");
  }

  /** Reads `2026-11-30`; years beyond four digits have a sign. Throws a SyntaxError. */
  static parse(text: string): LocalDate {
    const [, years, month, day] = /^([+-]\d{4,7}|\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? [];
    if (years !== undefined) {
      // In a year of the same shape that Date knows, moved by whole eras.
      const eras = Math.floor(Number(years) / 400);
      const millis = Date.UTC(2000 + Number(years) - eras * 400, Number(month) - 1, Number(day));
      const date = new LocalDate(millis / 86_400_000 + (eras - 5) * ERA);
      if (date.month === Number(month) && date.day === Number(day)) return date;
    }
    throw new SyntaxError(`no date: ${text}`);
  }

  /** The same day in the 400 years that begin with 1970. */
  get #like(): Date {
    return new Date((this.days - Math.floor(this.days / ERA) * ERA) * 86_400_000);
  }

  get year(): number {
    return this.#like.getUTCFullYear() + Math.floor(this.days / ERA) * 400;
  }

  /** From 1. */
  get month(): number {
    return this.#like.getUTCMonth() + 1;
  }

  /** From 1. */
  get day(): number {
    return this.#like.getUTCDate();
  }

  toString(): string {
    const { year } = this;
    const sign = year < 0 ? "-" : year > 9999 ? "+" : "";
    return `${sign}${pad(Math.abs(year), 4)}-${pad(this.month, 2)}-${pad(this.day, 2)}`;
  }

  toJSON(): string {
    return this.toString();
  }
}

/** A time of day. */
export class LocalTime {
  static readonly name: string = "LocalTime";
  /** Nanoseconds since midnight. */
  constructor(readonly nanoseconds: bigint) {
    if (nanoseconds < 0n || nanoseconds >= DAY_NANOS) throw new RangeError("a LocalTime has the nanoseconds of one day");
  }

  /** Reads `12:34:56.789`. Throws a SyntaxError. */
  static parse(text: string): LocalTime {
    const [, hour, minute, second = 0, fraction = ""] = /^([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?$/.exec(text) ?? [];
    if (hour === undefined) throw new SyntaxError(`no time of day: ${text}`);
    const seconds = Number(hour) * 3600 + Number(minute) * 60 + Number(second);
    return new LocalTime(BigInt(seconds) * 1_000_000_000n + BigInt(fraction.padEnd(9, "0")));
  }

  get hour(): number {
    return Math.floor(this.#seconds / 3600);
  }

  get minute(): number {
    return Math.floor(this.#seconds / 60) % 60;
  }

  get second(): number {
    return this.#seconds % 60;
  }

  get nanosecond(): number {
    return Number(this.nanoseconds % 1_000_000_000n);
  }

  get #seconds(): number {
    return Number(this.nanoseconds / 1_000_000_000n);
  }

  /** With as many digits of the second as are not zero. */
  toString(): string {
    const fraction = pad(this.nanosecond, 9).replace(/0+$/, "");
    return `${pad(this.hour, 2)}:${pad(this.minute, 2)}:${pad(this.second, 2)}${fraction && `.${fraction}`}`;
  }

  toJSON(): string {
    return this.toString();
  }
}

/** Days are unsigned there, with 1970 in the middle. */
const EPOCH = 2 ** 31;

export const date = ({ temporal: isTemporal }: ValueOptions): Codec => ({
  type: "date",
  size: 4,
  put: (writer, value) =>
    writer.int32(local(LocalDate, value, "date takes a LocalDate, a Temporal.PlainDate, or a string like 2026-11-30").days + EPOCH),
  get: ({ view }, at) => {
    const value = new LocalDate(view.getUint32(at) - EPOCH);
    return isTemporal ? temporal("PlainDate").from({ year: value.year, month: value.month, day: value.day }) : value;
  },
});

export const time = ({ temporal: isTemporal }: ValueOptions): Codec => ({
  type: "time",
  size: 8,
  put: (writer, value) =>
    writer.int64(local(LocalTime, value, "time takes a LocalTime, a Temporal.PlainTime, or a string like 12:34:56.789").nanoseconds),
  get: ({ view }, at) => {
    const value = new LocalTime(view.getBigInt64(at));
    return isTemporal ? temporal("PlainTime").from(value.toString()) : value;
  },
});

/** A value of a class, or what its text is. Temporal's have the same texts. */
function local<T>(type: { new (...parts: never[]): T; parse(text: string): T }, value: unknown, wanted: string): T {
  if (value instanceof type) return value;
  try {
    if (typeof value === "string" || Object.prototype.toString.call(value).startsWith("[object Temporal.")) return type.parse(String(value));
  } catch {
    // Refused below.
  }
  return misfit(value, wanted);
}
