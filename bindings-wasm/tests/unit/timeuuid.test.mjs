// UUIDs of version 1, against one of the specification of UUIDs and by their rules.

import assert from "node:assert/strict";
import { test } from "node:test";
import { dateOf, maxTimeuuid, minTimeuuid, timeuuid } from "messina-cql/timeuuid";

test("the time in a timeuuid is found", () => {
  // RFC 9562, A.1.
  assert.equal(dateOf("C232AB00-9414-11EC-B3C8-9F6BDECED846").toISOString(), "2022-02-22T19:22:22.000Z");
  const now = new Date();
  assert.deepEqual(dateOf(timeuuid(now)), now);
  for (const wrong of ["", "00112233-4455-6677-8899-aabbccddeeff"]) assert.throws(() => dateOf(wrong), TypeError);
});

test("those made at once differ, have version and variant, and name no card", () => {
  const made = Array.from({ length: 5000 }, () => timeuuid());
  assert.equal(new Set(made).size, made.length);
  for (const id of made) assert.match(id, /^[\da-f]{8}-[\da-f]{4}-1[\da-f]{3}-[89ab][\da-f]{3}-[\da-f][13579bdf][\da-f]{10}$/);
});

test("bounds of a millisecond", () => {
  const date = new Date("2022-02-22T19:22:22.000Z");
  assert.equal(minTimeuuid(date), "c232ab00-9414-11ec-8080-808080808080");
  assert.equal(maxTimeuuid(date), "c232d20f-9414-11ec-7f7f-7f7f7f7f7f7f");
});
