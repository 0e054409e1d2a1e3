// Values against bytes that the protocol's specification gives or that follow from its words, both ways.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Cells, CqlError, Decimal, Duration, LocalDate, LocalTime, Types, Writer, putValues } from "../../dist/internals.js";

const types = new Types();
const hex = (bytes) => Buffer.from(bytes).toString("hex");

/** The bytes of a value, its length in front. */
function encode(type, value, options) {
  const codecs = options ? new Types(options) : types;
  const writer = new Writer();
  putValues(writer, [{ name: "v", type }], [codecs.codec(type)], [value]);
  return hex(writer.written);
}

/** The value of bytes that stand between others. */
function decode(type, digits, options) {
  const codecs = options ? new Types(options) : types;
  const body = Buffer.from(digits, "hex");
  const cells = new Cells(Uint8Array.from([0xaa, 0xbb, 0xcc, ...body, 0xdd]).subarray(1));
  return codecs.codec(type).get(cells, 2, 2 + body.length);
}

const address = '{"shop"."address" "street" text "zip codes" list<int>}';

/** Type, value, bytes. */
const GOLDEN = [
  ["tinyint", -128, "80"],
  ["smallint", -2, "fffe"],
  ["int", 2147483647, "7fffffff"],
  ["bigint", -(2n ** 63n), "8000000000000000"],
  ["counter", 1n, "0000000000000001"],
  ["float", 1.5, "3fc00000"],
  ["double", -0.1, "bfb999999999999a"],
  ["boolean", true, "01"],
  ["boolean", false, "00"],
  ["text", "näher 🦀", "6ec3a4686572 20 f09fa680"],
  ["text", "", ""],
  ["text", "x".repeat(40), "78".repeat(40)],
  ["text", "0123456789abcdefg", "3031323334353637383961626364656667"],
  ["text", "﻿bom", "efbbbf626f6d"],
  ["ascii", "abc", "616263"],
  ["blob", Uint8Array.of(0, 255), "00ff"],
  ["uuid", "00112233-4455-6677-8899-aabbccddeeff", "00112233445566778899aabbccddeeff"],
  ["timeuuid", "d2177dd0-eaa2-11de-a572-001b779c76e3", "d2177dd0eaa211dea572001b779c76e3"],
  ["timestamp", new Date(-1), "ffffffffffffffff"],
  ["timestamp", new Date(1_700_000_000_123), "0000018bcfe5687b"],
  // The table of the specification.
  ...[[0n, "00"], [1n, "01"], [127n, "7f"], [128n, "0080"], [129n, "0081"], [-1n, "ff"], [-128n, "80"], [-129n, "ff7f"]]
    .map(([value, bytes]) => ["varint", value, bytes]),
  ["varint", 2n ** 64n, "010000000000000000"],
  ["varint", -(2n ** 63n), "8000000000000000"],
  ["varint", 2n ** 63n, "008000000000000000"],
  ["decimal", new Decimal(150n, 2), "00000002 0096"],
  ["decimal", new Decimal(-1n, -3), "fffffffd ff"],
  ["date", new LocalDate(0), "80000000"],
  ["date", LocalDate.parse("2014-01-01"), "80003ec7"],
  ["date", new LocalDate(-(2 ** 31)), "00000000"],
  ["date", new LocalDate(2 ** 31 - 1), "ffffffff"],
  ["time", LocalTime.parse("00:00:00"), "0000000000000000"],
  ["time", new LocalTime(86_399_999_999_999n), "00004e94914effff"],
  ["duration", new Duration(1, 2, 3n), "02 04 06"],
  ["duration", new Duration(-1, 0, 0n), "01 00 00"],
  ["duration", new Duration(0, 64, 8191n), "00 8080 bffe"],
  ["duration", new Duration(2147483647, 2147483647, 2n ** 63n - 1n), "f0fffffffe f0fffffffe fffffffffffffffffe"],
  ["duration", new Duration(-2147483648, -2147483648, -(2n ** 63n)), "f0ffffffff f0ffffffff ffffffffffffffffff"],
  ["inet", "127.0.0.1", "7f000001"],
  ["inet", "::1", "00000000000000000000000000000001"],
  ["inet", "::", "00000000000000000000000000000000"],
  ["inet", "1::", "00010000000000000000000000000000"],
  ["inet", "2001:db8::1:0:0:1", "20010db8000000000001000000000001"],
  ["inet", "2001:db8:0:1:1:1:1:1", "20010db8000000010001000100010001"],
  ["inet", "::ffff:10.1.2.3", "00000000000000000000ffff0a010203"],
  ["inet", "10:10:0:0:1::", "00100010000000000001000000000000"],
  ["list<int>", [1, -1], "00000002 00000004 00000001 00000004 ffffffff"],
  ["list<int>", [], "00000000"],
  ["set<text>", new Set(["a", ""]), "00000002 00000001 61 00000000"],
  ["map<text,int>", new Map([["k", 7]]), "00000001 00000001 6b 00000004 00000007"],
  ["map<int,list<text>>", new Map([[1, ["x"]]]), "00000001 00000004 00000001 00000009 00000001 00000001 78"],
  ["tuple<int,text>", [1, null], "00000004 00000001 ffffffff"],
  [address, { street: "s", "zip codes": [5] }, "00000001 73 0000000c 00000001 00000004 00000005"],
  [`list<${address}>`, [{ street: null, "zip codes": [] }], "00000001 0000000c ffffffff 00000004 00000000"],
  ["vector<float,3>", Float32Array.of(1, 0, -2), "3f800000 00000000 c0000000"],
  ["vector<bigint,1>", BigInt64Array.of(5n), "0000000000000005"],
  ["vector<vector<float,1>,2>", [Float32Array.of(1), Float32Array.of(2)], "3f800000 40000000"],
  ["vector<text,2>", ["ab", ""], "02 6162 00"],
  ["vector<smallint,2>", [1, -1], "02 0001 02 ffff"],
  ["vector<boolean,2>", [true, false], "01 00"],
  ["'org.example.Type'", Uint8Array.of(1, 2), "0102"],
  ["type 0x00ff", Uint8Array.of(1, 2), "0102"],
];

for (const [type, value, spaced] of GOLDEN) {
  const bytes = spaced.replaceAll(" ", "");
  test(`${type} ${typeof value === "object" ? JSON.stringify(value, (_, held) => (typeof held === "bigint" ? `${held}` : held)) : value}`, () => {
    assert.equal(encode(type, value), (bytes.length / 2).toString(16).padStart(8, "0") + bytes);
    assert.deepEqual(decode(type, bytes), value);
  });
}

test("null is null, undefined is not set, and an empty value of a number is null", () => {
  assert.deepEqual([encode("int", null), encode("int", undefined)], ["ffffffff", "fffffffe"]);
  assert.equal(encode("text", ""), "00000000");
  assert.deepEqual(decode("list<int>", "00000002 00000000 ffffffff".replaceAll(" ", "")), [null, null]);
});

test("what users may write besides what they read", () => {
  const same = (type, value, like) => assert.equal(encode(type, value), encode(type, like), `${type} ${String(value)}`);
  same("bigint", 5, 5n);
  same("bigint", "-9223372036854775808", -(2n ** 63n));
  same("varint", 1e15, 10n ** 15n);
  same("decimal", "1.50", new Decimal(150n, 2));
  same("decimal", 0.1, new Decimal(1n, 1));
  same("decimal", 7n, new Decimal(7n, 0));
  same("decimal", "-2.5e-3", new Decimal(-25n, 4));
  same("timestamp", 5, new Date(5));
  same("timestamp", -(2n ** 63n), -(2n ** 63n));
  same("timestamp", { epochMilliseconds: 7 }, new Date(7));
  same("date", "1969-12-31", new LocalDate(-1));
  same("time", "12:34:56.7", new LocalTime(45_296_700_000_000n));
  same("duration", "P1Y2M3DT4H5M6.007S", Duration.parse("1y2mo3d4h5m6s7ms"));
  same("uuid", "00112233-4455-6677-8899-AABBCCDDEEFF", "00112233-4455-6677-8899-aabbccddeeff");
  same("uuid", new Uint8Array(16), "00000000-0000-0000-0000-000000000000");
  same("inet", Uint8Array.of(1, 2, 3, 4), "1.2.3.4");
  same("inet", "0:0:0:0:0:FFFF:1.2.3.4", "::ffff:1.2.3.4");
  same("blob", Uint8Array.of(1, 2).buffer, Uint8Array.of(1, 2));
  same("list<int>", new Set([1, 2]), [1, 2]);
  same("list<int>", Int32Array.of(1, 2), [1, 2]);
  same("set<int>", [1, 2], new Set([1, 2]));
  same("map<text,int>", { a: 1 }, new Map([["a", 1]]));
  same("map<int,int>", { 3: 1 }, new Map([[3, 1]]));
  same("map<text,int>", [["a", 1]], new Map([["a", 1]]));
  same("vector<float,2>", [1, 2], Float32Array.of(1, 2));
  same(address, { street: "s" }, { street: "s", "zip codes": null });
});

test("what does not fit is refused with marker, type and place", () => {
  const refused = (type, value, message) => assert.throws(() => encode(type, value), (error) => {
    assert.ok(error instanceof CqlError && error.kind === "encode", `${type}: ${error}`);
    assert.match(error.message, message);
    return true;
  });
  refused("int", 2 ** 31, /^value 0 \(v int\): int takes integers from -2147483648 to 2147483647, not number 2147483648$/);
  for (const value of [1.5, NaN, "1", 1n, {}, true]) refused("int", value, /int takes/);
  refused("tinyint", 128, /tinyint takes/);
  for (const value of [2n ** 63n, 2 ** 53, "x", "1.0", 1.5, null + 0.5]) refused("bigint", value, /bigint takes/);
  refused("float", "1", /float takes numbers/);
  refused("boolean", 1, /boolean takes/);
  refused("text", 5, /text takes strings, not number 5/);
  refused("text", "half \ud83e", /text takes strings of whole characters, not /);
  refused("set<text>", ["\udd80"], /whole characters/);
  refused("ascii", "ä", /ascii/);
  refused("blob", [1], /blob takes/);
  refused("blob", "00", /blob takes/);
  for (const value of ["", "00112233", "00112233-4455-6677-8899-aabbccddeefg", new Uint8Array(15), 5]) refused("uuid", value, /uuid takes/);
  refused("timeuuid", "00112233-4455-6677-8899-aabbccddeeff", /version 1/);
  for (const value of [new Date(NaN), "2026-01-01", 1.5, 2n ** 63n]) refused("timestamp", value, /timestamp takes/);
  for (const value of ["1e99999999999", "1,5", "", ".", NaN, Infinity, {}]) refused("decimal", value, /decimal takes/);
  for (const value of ["2026-02-30", "2026-1-1", new Date(), 5, "10000-01-01", "+9999999-01-01"]) refused("date", value, /date takes/);
  for (const value of ["24:00:00", "12", 5n, "12:60"]) refused("time", value, /time takes/);
  for (const value of ["", "5", "1x", "P", 5, {}, "9999999999y"]) refused("duration", value, /duration takes/);
  for (const value of ["", "1.2.3", "1.2.3.256", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "::g", "::1%eth0", "12345::", "a.b.c.d", new Uint8Array(5)]) {
    refused("inet", value, /inet takes/);
  }
  refused("list<int>", "12", /list<int> takes/);
  refused("list<int>", [1, "2"], /^value 0 \(v list<int>\)\[1\]: int takes/);
  refused("list<int>", [null], /takes no null/);
  refused("map<text,list<int>>", { a: [1, {}] }, /\[a\]\[1\]: int takes .* not an object/);
  refused("map<int,int>", new Map([["x", 1]]), /\.key: int takes/);
  refused("tuple<int,int>", [1], /array of 2/);
  refused(address, { street: 5 }, /^value 0 .*\.street: text takes strings, not number 5$/);
  refused(address, { stret: "x" }, /no field stret/);
  refused("vector<float,2>", [1], /takes 2 elements/);
  refused("vector<float,2>", [1, null], /null/);
});

test("options choose how values are made", () => {
  const read = (type, digits, options) => decode(type, digits, options);
  assert.equal(read("bigint", "0000000000000005", { bigint: "number" }), 5);
  assert.equal(read("varint", "05", { bigint: "string" }), "5");
  assert.throws(() => read("bigint", "7fffffffffffffff", { bigint: "number" }), RangeError);
  assert.equal(read("decimal", "000000020096", { decimal: "string" }), "1.50");
  assert.equal(read("timestamp", "0000000000000005", { timestamp: "number" }), 5);
  assert.equal(read("timestamp", "7fffffffffffffff", { timestamp: "bigint" }), 2n ** 63n - 1n);
  assert.throws(() => read("timestamp", "7fffffffffffffff"), /no Date holds/);
  assert.deepEqual(read("map<text,int>", "0000000100000009" + hex(Buffer.from("__proto__")) + "0000000400000007", { map: "object" }), JSON.parse('{"__proto__":7}'));
  const page = new Cells(Uint8Array.of(1, 2, 3));
  assert.equal(new Types({ blob: "view" }).codec("blob").get(page, 1, 3).buffer, page.bytes.buffer);
  assert.notEqual(types.codec("blob").get(page, 1, 3).buffer, page.bytes.buffer);
  assert.throws(() => read("date", "80000000", { temporal: !globalThis.Temporal && true }), { kind: "config" });
});

test("malformed bytes are refused and nothing beyond the value is read", () => {
  const malformed = [
    ["list<int>", "00000001"], ["list<int>", "7fffffff"], ["list<int>", "ffffffff"], ["list<int>", "0000000100000005000000"],
    ["list<int>", "00000001000000020001"], ["map<int,int>", "0000000100000000"], ["tuple<int>", "000000040000"],
    ["tuple<int>", "00"], [address, "7fffffff61"], ["vector<text,1>", "05"], ["vector<text,1>", "ff"], ["vector<text,2>", "0161"],
    ["duration", "0204"], ["duration", "02048f"], ["duration", ""], ["inet", "0102"], ["time", "ffffffffffffffff"], ["text", "ff"], ["text", "c3"],
    ["text", "78".repeat(33) + "ff"],
  ];
  for (const [type, bytes] of malformed) assert.throws(() => decode(type, bytes), (error) => /Malformed|RangeError/.test(error.constructor.name), `${type} ${bytes}`);
});

test("decimals keep their digits", () => {
  for (const text of ["0", "1.50", "-0.001", "0.0000001", "123456789012345678901234567890.123", "1E+3", "-1.5E+10"]) {
    const value = Decimal.parse(text);
    assert.deepEqual(Decimal.parse(`${value}`), value, text);
  }
  const texts = [["150", 2, "1.50"], ["-1", 3, "-0.001"], ["1", 7, "1E-7"], ["12", 8, "1.2E-7"], ["1", -3, "1E+3"], ["15", -1, "1.5E+2"], ["0", 0, "0"], ["0", 2, "0.00"], ["5", 2147483647, "5E-2147483647"]];
  for (const [unscaled, scale, text] of texts) assert.equal(`${new Decimal(BigInt(unscaled), scale)}`, text);
  assert.equal(JSON.stringify({ total: Decimal.parse("9.90") }), '{"total":"9.90"}');
  assert.equal(Decimal.parse("2.5").toNumber(), 2.5);
  assert.throws(() => new Decimal(1n, 2 ** 31), RangeError);
});

test("dates, times of day and durations as text", () => {
  for (const text of ["1970-01-01", "2000-02-29", "1969-12-31", "0000-01-01", "-0001-12-31", "9999-12-31", "+10000-01-01", "-5877641-06-23", "+5881580-07-11", "1600-02-29", "2400-02-29", "2100-03-01"]) {
    const date = LocalDate.parse(text);
    assert.equal(`${date}`, text);
    assert.equal(`${new LocalDate(date.days)}`, text);
  }
  // Against the platform's calendar, day by day over a whole era of it.
  for (let days = -150_000; days <= 150_000; days += 7) {
    assert.equal(`${new LocalDate(days)}`, new Date(days * 86_400_000).toISOString().slice(0, 10));
  }
  assert.deepEqual([LocalDate.parse("2026-11-30").year, LocalDate.parse("2026-11-30").month, LocalDate.parse("2026-11-30").day], [2026, 11, 30]);
  assert.throws(() => new LocalDate(1.5), RangeError);
  for (const text of ["00:00:00", "12:34:56.789", "23:59:59.999999999", "01:02:03.000000001"]) assert.equal(`${LocalTime.parse(text)}`, text);
  const { hour, minute, second, nanosecond } = LocalTime.parse("12:34:56.789");
  assert.deepEqual([hour, minute, second, nanosecond], [12, 34, 56, 789_000_000]);
  for (const [text, written] of [["1y2mo3d4h5m6s7ms8us9ns", "1y2mo3d4h5m6s7ms8us9ns"], ["14mo", "1y2mo"], ["-1w", "-7d"], ["PT90M", "1h30m"], ["P2M", "2mo"], ["PT2M", "2m"], ["P1W", "7d"], ["0s", "0s"], ["1500ms", "1s500ms"], ["-PT0.5S", "-500ms"]]) {
    assert.equal(`${Duration.parse(text)}`, written, text);
  }
  assert.throws(() => new Duration(1, -1, 0n), RangeError);
  assert.equal(JSON.stringify([new Duration(0, 1, 0n), new LocalDate(0), new LocalTime(0n)]), '["1d","1970-01-01","00:00:00"]');
});
