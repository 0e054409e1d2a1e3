// UUIDs of version 1, which hold a time. No host, no module: made and read where they are needed.

import { uuidBytes, uuidText } from "./values/texts.js";

/** From 1582-10-15 to 1970-01-01, in 100 ns. */
const GREGORIAN = 122_192_928_000_000_000n;

/** Units of 100 ns in a millisecond. */
const TICKS = 10_000;

let last = 0;
let ticks = 0;

/** A new `timeuuid` of now, or of another time. Those of one millisecond follow each other, as far as there is room. */
export function timeuuid(date: Date | number = Date.now()): string {
  const millis = Number(date);
  ticks = millis === last ? (ticks + 1) % TICKS : 0;
  last = millis;
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  putTime(bytes, millis, ticks);
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  // A node id that is no card's address.
  bytes[10]! |= 1;
  return uuidText(bytes, 0);
}

/** The time in a `timeuuid`. Throws a TypeError for what is none. */
export function dateOf(timeuuid: string): Date {
  const bytes = uuidBytes(timeuuid);
  if (!bytes || bytes[6]! >> 4 !== 1) throw new TypeError(`no timeuuid: ${timeuuid}`);
  const view = new DataView(bytes.buffer);
  const time = (BigInt(view.getUint16(6) & 0x0fff) << 48n) | (BigInt(view.getUint16(4)) << 32n) | BigInt(view.getUint32(0));
  return new Date(Number((time - GREGORIAN) / BigInt(TICKS)));
}

/** The least `timeuuid` of a millisecond, as CQL's `minTimeuuid`: for the beginning of a range. */
export function minTimeuuid(date: Date | number): string {
  return bound(Number(date), 0, 0x80);
}

/** The greatest `timeuuid` of a millisecond, as CQL's `maxTimeuuid`: for the end of a range. */
export function maxTimeuuid(date: Date | number): string {
  return bound(Number(date), TICKS - 1, 0x7f);
}

/** Servers compare the last eight bytes as signed ones. */
function bound(millis: number, tick: number, rest: number): string {
  const bytes = new Uint8Array(16).fill(rest, 8);
  putTime(bytes, millis, tick);
  return uuidText(bytes, 0);
}

function putTime(bytes: Uint8Array, millis: number, tick: number): void {
  const view = new DataView(bytes.buffer);
  const time = BigInt(millis) * BigInt(TICKS) + BigInt(tick) + GREGORIAN;
  view.setUint32(0, Number(time & 0xffff_ffffn));
  view.setUint16(4, Number((time >> 32n) & 0xffffn));
  view.setUint16(6, Number((time >> 48n) & 0x0fffn) | 0x1000);
}
