// Addresses of hosts.

import { Malformed, misfit, type Codec } from "./codec.js";
import { bytesOf } from "./texts.js";

/** The canonical text of four or sixteen bytes (RFC 5952). */
function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  if (bytes.length !== 16) throw new Malformed(`${bytes.length} bytes`);
  const groups = Array.from({ length: 8 }, (_, i) => (bytes[i * 2]! << 8) | bytes[i * 2 + 1]!);
  const isMapped = groups.every((group, i) => i > 5 || group === (i === 5 ? 0xffff : 0));
  if (isMapped) return `::ffff:${bytes.subarray(12).join(".")}`;
  const text = groups.map((group) => group.toString(16)).join(":");
  // The longest run of zeros, the first of equal ones.
  const runs = text.match(/\b0(?::0)+\b/g) ?? [];
  const longest = runs.reduce((best, run) => (run.length > best.length ? run : best), "");
  if (!longest) return text;
  const at = text.search(new RegExp(`(?<![^:])${longest}(?![^:])`));
  return `${text.slice(0, at).replace(/:$/, "")}::${text.slice(at + longest.length).replace(/^:/, "")}`;
}

/** The bytes of an address' text; undefined if it is none. */
function addressBytes(text: string): Uint8Array | undefined {
  const four = /^(.*:)?(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  const last = four?.slice(2).map(Number) ?? [];
  if (last.some((part) => part > 255)) return undefined;
  if (four && four[1] === undefined) return Uint8Array.from(last);
  const whole = four ? `${four[1]}${((last[0]! << 8) | last[1]!).toString(16)}:${((last[2]! << 8) | last[3]!).toString(16)}` : text;
  const halves = whole.split("::");
  const groups = halves.map((half) => (half ? half.split(":") : []));
  const missing = 8 - groups.flat().length;
  if (halves.length > 2 || (halves.length === 2 ? missing < 1 : missing !== 0)) return undefined;
  const all = halves.length === 2 ? [...groups[0]!, ...Array(missing).fill("0"), ...groups[1]!] : groups[0]!;
  if (!all.every((group) => /^[\da-f]{1,4}$/i.test(group))) return undefined;
  return Uint8Array.from(all.flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 255]));
}

export const inet: Codec = {
  type: "inet",
  put(writer, value) {
    const bytes = typeof value === "string" ? addressBytes(value) : bytesOf(value);
    if (bytes?.length !== 4 && bytes?.length !== 16) misfit(value, "inet takes an IPv4 or IPv6 address as a string, or its bytes");
    writer.bytes(bytes);
  },
  get: ({ bytes }, at, end) => addressText(bytes.subarray(at, end)),
};
