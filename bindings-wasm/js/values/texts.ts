// Text, bytes and uuids.

import type { Cells } from "../bytes.js";
import { Malformed, misfit, type Codec } from "./codec.js";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Texts up to this length are made without the decoder, whose call costs more than they do. */
const SHORT_MAX = 32;

/** The characters of a short text, by its length. */
const CHARACTERS = Array.from({ length: SHORT_MAX + 1 }, (_, length) => new Array<number>(length).fill(0));

/** The UTF-8 text from `at` to `end`. */
export function textAt({ bytes }: Cells, at: number, end: number): string {
  const length = end - at;
  if (length > SHORT_MAX) return decode(bytes, at, end);
  const characters = CHARACTERS[length]!;
  let all = 0;
  for (let i = 0; i < length; i++) all |= characters[i] = bytes[at + i]!;
  return all > 127 ? decode(bytes, at, end) : String.fromCharCode.apply(null, characters);
}

function decode(bytes: Uint8Array, at: number, end: number): string {
  try {
    return decoder.decode(bytes.subarray(at, end));
  } catch {
    throw new Malformed("bytes that are no UTF-8");
  }
}

/** Half a character, which UTF-8 cannot hold: it would be replaced. */
const HALF = /\p{Surrogate}/u;

export const text: Codec = {
  type: "text",
  hasEmpty: true,
  put(writer, value) {
    if (typeof value !== "string") misfit(value, "text takes strings");
    if (HALF.test(value)) misfit(value, "text takes strings of whole characters");
    writer.text(value);
  },
  get: textAt,
};

export const ascii: Codec = {
  type: "ascii",
  hasEmpty: true,
  put(writer, value) {
    if (typeof value !== "string" || /[^\0-\x7f]/.test(value)) misfit(value, "ascii takes strings of ASCII");
    writer.text(value);
  },
  get: textAt,
};

/** The bytes of whatever holds bytes. */
export function bytesOf(value: unknown): Uint8Array | undefined {
  if (value instanceof Uint8Array) return value;
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return undefined;
}

/** Types whose values are plain bytes. */
export function blob(type: string, form: "copy" | "view" | undefined): Codec {
  return {
    type,
    hasEmpty: true,
    put(writer, value) {
      writer.bytes(bytesOf(value) ?? misfit(value, `${type} takes a Uint8Array or an ArrayBuffer`));
    },
    get: form === "view"
      ? ({ bytes }, at, end) => bytes.subarray(at, end)
      : ({ bytes }, at, end) => bytes.slice(at, end),
  };
}

/** The two hexadecimal digits of each byte, as character codes. */
const HIGH = new Uint8Array(256);
const LOW = new Uint8Array(256);
for (let byte = 0; byte < 256; byte++) {
  HIGH[byte] = "0123456789abcdef".charCodeAt(byte >> 4);
  LOW[byte] = "0123456789abcdef".charCodeAt(byte & 15);
}

/** The digits of bytes. */
export function hexOf(bytes: Uint8Array, at: number, end: number): string {
  let text = "";
  for (; at < end; at++) text += String.fromCharCode(HIGH[bytes[at]!]!, LOW[bytes[at]!]!);
  return text;
}

/** The 36 characters of a uuid. */
export function uuidText(b: Uint8Array, i: number): string {
  const h = HIGH, l = LOW;
  return String.fromCharCode(
    h[b[i]!]!, l[b[i]!]!, h[b[i + 1]!]!, l[b[i + 1]!]!, h[b[i + 2]!]!, l[b[i + 2]!]!, h[b[i + 3]!]!, l[b[i + 3]!]!, 45,
    h[b[i + 4]!]!, l[b[i + 4]!]!, h[b[i + 5]!]!, l[b[i + 5]!]!, 45,
    h[b[i + 6]!]!, l[b[i + 6]!]!, h[b[i + 7]!]!, l[b[i + 7]!]!, 45,
    h[b[i + 8]!]!, l[b[i + 8]!]!, h[b[i + 9]!]!, l[b[i + 9]!]!, 45,
    h[b[i + 10]!]!, l[b[i + 10]!]!, h[b[i + 11]!]!, l[b[i + 11]!]!, h[b[i + 12]!]!, l[b[i + 12]!]!,
    h[b[i + 13]!]!, l[b[i + 13]!]!, h[b[i + 14]!]!, l[b[i + 14]!]!, h[b[i + 15]!]!, l[b[i + 15]!]!,
  );
}

const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;

/** The 16 bytes of a uuid's text; undefined if it is none. */
export function uuidBytes(text: string): Uint8Array | undefined {
  if (!UUID.test(text)) return undefined;
  return Uint8Array.from(text.replaceAll("-", "").match(/../g)!, (digits) => parseInt(digits, 16));
}

/** `uuid` and `timeuuid`. */
export function uuid(type: string): Codec {
  return {
    type,
    size: 16,
    width: 16,
    put(writer, value) {
      const bytes = typeof value === "string" ? uuidBytes(value) : bytesOf(value);
      if (bytes?.length !== 16) misfit(value, `${type} takes strings like "00112233-4455-6677-8899-aabbccddeeff", or 16 bytes`);
      if (type === "timeuuid" && bytes[6]! >> 4 !== 1) misfit(value, "timeuuid takes uuids of version 1");
      writer.bytes(bytes);
    },
    get: ({ bytes }, at) => uuidText(bytes, at),
  };
}
