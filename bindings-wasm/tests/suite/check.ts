// Assertions, in the few words that the suite needs.

export function ok(value: unknown, message = "expected something"): asserts value {
  if (!value) throw new Error(message);
}

/** Deep equality of plain data, typed arrays, maps and sets. */
export function equal(actual: unknown, expected: unknown, what = "value"): void {
  if (!same(actual, expected)) throw new Error(`${what}: ${shown(actual)} instead of ${shown(expected)}`);
}

type Facts = Record<string, unknown>;

/** The promise rejects, with these facts: regular expressions match, anything else is equal. */
export async function rejects(promise: PromiseLike<unknown>, facts: Facts): Promise<any> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return has(error, facts);
  }
  throw new Error(`resolved with ${shown(value)} instead of rejecting with ${shown(facts)}`);
}

/** The function throws, with these facts. */
export function throws(action: () => unknown, facts: Facts): any {
  let value: unknown;
  try {
    value = action();
  } catch (error) {
    return has(error, facts);
  }
  throw new Error(`returned ${shown(value)} instead of throwing ${shown(facts)}`);
}

function has(error: any, facts: Facts) {
  for (const [fact, expected] of Object.entries(facts)) {
    const isRight = expected instanceof RegExp ? expected.test(error?.[fact]) : same(error?.[fact], expected);
    if (!isRight) {
      const what = `${fact} is ${shown(error?.[fact])} instead of ${shown(expected)} in ${error?.kind} ${error?.stack ?? error}`;
      throw new Error(what, { cause: error });
    }
  }
  return error;
}

function same(a: any, b: any): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || !a || !b) return false;
  if (a.constructor?.name !== b.constructor?.name && !(isPlain(a) && isPlain(b))) return false;
  if (a instanceof Date) return a.getTime() === b.getTime();
  if (a instanceof Map || a instanceof Set) return same([...a], [...b]);
  if (ArrayBuffer.isView(a) || Array.isArray(a)) {
    const [left, right] = [a, b] as [ArrayLike<unknown>, ArrayLike<unknown>];
    return left.length === right.length && Array.from(left).every((value, at) => same(value, right[at]));
  }
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
}

function isPlain(value: object) {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype.constructor?.name === "Object";
}

function shown(value: unknown): string {
  if (typeof value === "bigint") return `${value}n`;
  if (value instanceof RegExp || value instanceof Error) return String(value);
  if (value instanceof Map || value instanceof Set) return `${value.constructor.name} ${shown([...value])}`;
  const text = JSON.stringify(value, (_, held) => (typeof held === "bigint" ? `${held}n` : held)) ?? String(value);
  return text.length > 500 ? `${text.slice(0, 500)}… (${text.length})` : text;
}
