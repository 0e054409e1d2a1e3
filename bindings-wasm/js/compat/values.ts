// The value classes of cassandra-driver, each around what this package reads and writes.

import { dateOf, maxTimeuuid, minTimeuuid, timeuuid } from "../timeuuid.js";
import { Duration as OwnDuration } from "../values/duration.js";
import { LocalDate as OwnDate, LocalTime as OwnTime } from "../values/local.js";
import { uuidBytes, uuidText } from "../values/texts.js";
import { Decimal } from "../values/varint.js";

/** What all have in common. */
export abstract class Value {
  /** What this package writes for it. @internal */
  abstract plain(): unknown;

  equals(other: unknown): boolean {
    return other instanceof Value && other.constructor === this.constructor && String(other) === String(this);
  }

  toJSON(): unknown {
    return this.toString();
  }

  inspect(): string {
    return `${this.constructor.name}: ${this.toString()}`;
  }
}

/** What two whole numbers have in common. */
abstract class Whole extends Value {
  abstract toBigInt(): bigint;
  protected abstract like(value: bigint): this;

  plain(): bigint {
    return this.toBigInt();
  }
  override toString(): string {
    return this.toBigInt().toString();
  }
  toNumber(): number {
    return Number(this.toBigInt());
  }
  toInt(): number {
    return Number(BigInt.asIntN(32, this.toBigInt()));
  }
  isZero(): boolean {
    return this.toBigInt() === 0n;
  }
  isNegative(): boolean {
    return this.toBigInt() < 0n;
  }
  compare(other: Whole | number | bigint | string): -1 | 0 | 1 {
    const [a, b] = [this.toBigInt(), whole(other)];
    return a < b ? -1 : a > b ? 1 : 0;
  }
  override equals(other: unknown): boolean {
    return (other instanceof Whole || typeof other === "number" || typeof other === "bigint") && this.compare(other) === 0;
  }
  notEquals(other: unknown): boolean {
    return !this.equals(other);
  }
  lessThan(other: Whole | number): boolean {
    return this.compare(other) < 0;
  }
  greaterThan(other: Whole | number): boolean {
    return this.compare(other) > 0;
  }
  add(other: Whole | number): this {
    return this.like(this.toBigInt() + whole(other));
  }
  subtract(other: Whole | number): this {
    return this.like(this.toBigInt() - whole(other));
  }
  multiply(other: Whole | number): this {
    return this.like(this.toBigInt() * whole(other));
  }
  divide(other: Whole | number): this {
    return this.like(this.toBigInt() / whole(other));
  }
  modulo(other: Whole | number): this {
    return this.like(this.toBigInt() % whole(other));
  }
  negate(): this {
    return this.like(-this.toBigInt());
  }
}

function whole(value: Whole | number | bigint | string): bigint {
  return value instanceof Whole ? value.toBigInt() : BigInt(value);
}

/** A 64-bit integer. */
export class Long extends Whole {
  static override readonly name: string = "Long";
  readonly low: number;
  readonly high: number;
  readonly unsigned = false;

  constructor(low: number, high = 0) {
    super();
    this.low = low | 0;
    this.high = high | 0;
  }

  static fromBigInt(value: bigint): Long {
    return new Long(Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
  }
  static fromString(text: string): Long {
    return Long.fromBigInt(BigInt(text));
  }
  static fromNumber(value: number): Long {
    return Long.fromBigInt(BigInt(Math.trunc(value)));
  }
  static fromInt(value: number): Long {
    return Long.fromNumber(value);
  }
  static fromBits(low: number, high: number): Long {
    return new Long(low, high);
  }
  static fromValue(value: Long | number | string): Long {
    return Long.fromBigInt(whole(value));
  }
  static isLong(value: unknown): value is Long {
    return value instanceof Long;
  }
  static readonly ZERO = new Long(0, 0);
  static readonly ONE = new Long(1, 0);
  static readonly MAX_VALUE = new Long(-1, 0x7fffffff);
  static readonly MIN_VALUE = new Long(0, -0x80000000);

  toBigInt(): bigint {
    return (BigInt(this.high) << 32n) | BigInt(this.low >>> 0);
  }
  protected like(value: bigint): this {
    return Long.fromBigInt(value) as this;
  }
}

/** An integer without bounds. */
export class Integer extends Whole {
  static override readonly name: string = "Integer";
  constructor(readonly value: bigint) {
    super();
  }
  static fromString(text: string): Integer {
    return new Integer(BigInt(text));
  }
  static fromNumber(value: number): Integer {
    return new Integer(BigInt(Math.trunc(value)));
  }
  static fromInt(value: number): Integer {
    return Integer.fromNumber(value);
  }
  toBigInt(): bigint {
    return this.value;
  }
  protected like(value: bigint): this {
    return new Integer(value) as this;
  }
}

/** A decimal number. */
export class BigDecimal extends Value {
  static override readonly name: string = "BigDecimal";
  readonly #decimal: Decimal;

  constructor(unscaled: Integer | bigint | number, scale: number) {
    super();
    this.#decimal = new Decimal(unscaled instanceof Integer ? unscaled.value : BigInt(unscaled), scale);
  }
  static fromDecimal({ unscaled, scale }: Decimal): BigDecimal {
    return new BigDecimal(unscaled, scale);
  }
  static fromString(text: string): BigDecimal {
    return BigDecimal.fromDecimal(Decimal.parse(text));
  }
  static fromNumber(value: number): BigDecimal {
    return BigDecimal.fromString(String(value));
  }
  plain(): Decimal {
    return this.#decimal;
  }
  toNumber(): number {
    return this.#decimal.toNumber();
  }
  override toString(): string {
    return this.#decimal.toString();
  }
}

/** A UUID. */
export class Uuid extends Value {
  static override readonly name: string = "Uuid";
  constructor(readonly buffer: Uint8Array) {
    super();
    if (buffer?.length !== 16) throw new TypeError("You must provide a buffer containing 16 bytes");
  }
  static fromString(text: string): Uuid {
    const bytes = uuidBytes(text);
    if (!bytes) throw new TypeError("Invalid string representation of Uuid, it should be in the 00000000-0000-0000-0000-000000000000");
    return new this(asBuffer(bytes));
  }
  static random(): Uuid {
    return Uuid.fromString(crypto.randomUUID());
  }
  getBuffer(): Uint8Array {
    return this.buffer;
  }
  plain(): Uint8Array {
    return this.buffer;
  }
  override toString(): string {
    return uuidText(this.buffer, 0);
  }
}

/** A UUID of version 1. */
export class TimeUuid extends Uuid {
  static override readonly name: string = "TimeUuid";
  static now(): TimeUuid {
    return TimeUuid.fromDate(new Date());
  }
  static fromDate(date: Date): TimeUuid {
    return TimeUuid.fromString(timeuuid(date));
  }
  static min(date: Date): TimeUuid {
    return TimeUuid.fromString(minTimeuuid(date));
  }
  static max(date: Date): TimeUuid {
    return TimeUuid.fromString(maxTimeuuid(date));
  }
  static override fromString(text: string): TimeUuid {
    return super.fromString(text) as TimeUuid;
  }
  getDate(): Date {
    return dateOf(this.toString());
  }
}

/** A date of the calendar. */
export class LocalDate extends Value {
  static override readonly name: string = "LocalDate";
  readonly #date: OwnDate;

  constructor(year: number, month: number, day: number) {
    super();
    const millis = Date.UTC(2000, month - 1, day);
    // A year of its own, since Date.UTC takes 0 to 99 for those of another century.
    const date = new Date(millis);
    date.setUTCFullYear(year, month - 1, day);
    this.#date = new OwnDate(date.getTime() / 86_400_000);
  }
  static fromOwn(date: OwnDate): LocalDate {
    return new LocalDate(date.year, date.month, date.day);
  }
  static fromString(text: string): LocalDate {
    return LocalDate.fromOwn(OwnDate.parse(text));
  }
  static fromDate(date: Date): LocalDate {
    return new LocalDate(date.getFullYear(), date.getMonth() + 1, date.getDate());
  }
  static now(): LocalDate {
    return LocalDate.fromDate(new Date());
  }
  get year(): number {
    return this.#date.year;
  }
  get month(): number {
    return this.#date.month;
  }
  get day(): number {
    return this.#date.day;
  }
  get date(): Date {
    return new Date(this.#date.days * 86_400_000);
  }
  plain(): OwnDate {
    return this.#date;
  }
  override toString(): string {
    return this.#date.toString();
  }
}

/** A time of day. */
export class LocalTime extends Value {
  static override readonly name: string = "LocalTime";
  readonly #time: OwnTime;

  constructor(nanoseconds: Long | bigint) {
    super();
    this.#time = new OwnTime(whole(nanoseconds));
  }
  static fromString(text: string): LocalTime {
    return new LocalTime(OwnTime.parse(text).nanoseconds);
  }
  get hour(): number {
    return this.#time.hour;
  }
  get minute(): number {
    return this.#time.minute;
  }
  get second(): number {
    return this.#time.second;
  }
  get nanosecond(): number {
    return this.#time.nanosecond;
  }
  getTotalNanoseconds(): Long {
    return Long.fromBigInt(this.#time.nanoseconds);
  }
  plain(): OwnTime {
    return this.#time;
  }
  override toString(): string {
    return this.#time.toString();
  }
}

/** Months, days and nanoseconds. */
export class Duration extends Value {
  static override readonly name: string = "Duration";
  readonly #duration: OwnDuration;
  readonly nanoseconds: Long;

  constructor(readonly months: number, readonly days: number, nanoseconds: Long | number | bigint) {
    super();
    this.nanoseconds = Long.fromBigInt(whole(nanoseconds));
    this.#duration = new OwnDuration(months, days, this.nanoseconds.toBigInt());
  }
  static fromString(text: string): Duration {
    const { months, days, nanoseconds } = OwnDuration.parse(text);
    return new Duration(months, days, nanoseconds);
  }
  plain(): OwnDuration {
    return this.#duration;
  }
  override toJSON(): unknown {
    return { months: this.months, days: this.days, nanoseconds: this.nanoseconds };
  }
  override toString(): string {
    return this.#duration.toString();
  }
}

/** An address. */
export class InetAddress extends Value {
  static override readonly name: string = "InetAddress";
  readonly #text: string;
  readonly length: number;
  readonly version: 4 | 6;

  constructor(text: string) {
    super();
    this.#text = text;
    this.version = text.includes(":") ? 6 : 4;
    this.length = this.version === 4 ? 4 : 16;
  }
  static fromString(text: string): InetAddress {
    return new InetAddress(text);
  }
  plain(): string {
    return this.#text;
  }
  override toString(): string {
    return this.#text;
  }
}

/** Values of several types. */
export class Tuple extends Value {
  static override readonly name: string = "Tuple";
  readonly elements: readonly unknown[];

  constructor(...elements: unknown[]) {
    super();
    this.elements = elements;
  }
  static fromArray(elements: readonly unknown[]): Tuple {
    return new Tuple(...elements);
  }
  get length(): number {
    return this.elements.length;
  }
  get(index: number): unknown {
    return this.elements[index] ?? null;
  }
  values(): unknown[] {
    return [...this.elements];
  }
  plain(): readonly unknown[] {
    return this.elements;
  }
  override toString(): string {
    return `(${this.elements.map(String).join(",")})`;
  }
  override toJSON(): unknown {
    return this.elements;
  }
}

/** Leaves a column as it is. */
export const unset = Object.freeze({ unset: true });

/** A Buffer where there is that class. */
export function asBuffer(bytes: Uint8Array): Uint8Array {
  const { Buffer } = globalThis as { Buffer?: { from(buffer: ArrayBufferLike, at: number, length: number): Uint8Array } };
  return Buffer ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length) : bytes;
}
