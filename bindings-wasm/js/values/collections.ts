// Values made of values: lists, sets, maps, tuples, user-defined types, vectors.

import type { Cells, Writer } from "../bytes.js";
import { Malformed, Misfit, misfit, type Codec, type ValueOptions } from "./codec.js";
import { VintReader, putVint } from "./vint.js";

/** Writes a part behind its length; tells where it stands if it does not fit. */
function putPart(writer: Writer, codec: Codec, value: unknown, place: string, isNullable = false): void {
  const start = writer.length;
  writer.int32(-1);
  if (value === null || value === undefined) {
    if (isNullable) return;
    misfit(value === null ? undefined : value, `${codec.type} in a collection takes no null`);
  }
  put(writer, codec, value, place);
  writer.endValue(start);
}

function put(writer: Writer, codec: Codec, value: unknown, place: string): void {
  try {
    codec.put(writer, value);
  } catch (error) {
    if (error instanceof Misfit) error.path = place + error.path;
    throw error;
  }
}

/** Reads parts with their lengths in front, none beyond the end. */
class Parts {
  constructor(readonly cells: Cells, public at: number, readonly end: number) {}

  int32(): number {
    if (this.at + 4 > this.end) throw new Malformed("too few bytes");
    this.at += 4;
    return this.cells.view.getInt32(this.at - 4);
  }

  next(codec: Codec): any {
    const length = this.int32();
    return length < 0 ? null : this.take(codec, length);
  }

  take(codec: Codec, length: number): any {
    const at = this.at;
    if (length > this.end - at) throw new Malformed("too few bytes");
    this.at += length;
    return valueOf(codec, this.cells, at, this.at);
  }
}

/** The value of bytes whose length is known; null where they are empty and the type has no empty value. */
export function valueOf(codec: Codec, cells: Cells, at: number, end: number): any {
  if (at === end && !codec.hasEmpty) return null;
  if (codec.size !== undefined && codec.size !== end - at) throw new Malformed(`${end - at} bytes are no ${codec.type}`);
  return codec.get(cells, at, end);
}

/** Elements in their order, whatever holds them. */
function elements(value: unknown, type: string): unknown[] {
  if (typeof value === "object" && Symbol.iterator in value!) return Array.from(value as Iterable<unknown>);
  return misfit(value, `${type} takes an array, a Set or anything else to iterate`);
}

/** Calls `take` as often as the number in front says; each takes at least `least` bytes. */
function each(parts: Parts, least: number, take: () => void): void {
  if (parts.at === parts.end) return;
  const count = parts.int32();
  if (count < 0 || count * least > parts.end - parts.at) throw new Malformed(`${count} elements in ${parts.end - parts.at} bytes`);
  for (let i = 0; i < count; i++) take();
}

/** `list` and `set`. */
export function sequence(name: "list" | "set", element: Codec): Codec {
  const type = `${name}<${element.type}>`;
  return {
    type,
    hasEmpty: true,
    put(writer, value) {
      const list = elements(value, type);
      writer.int32(list.length);
      list.forEach((part, index) => putPart(writer, element, part, `[${index}]`));
    },
    get(cells, at, end) {
      const parts = new Parts(cells, at, end);
      const list: unknown[] = [];
      each(parts, 4, () => list.push(parts.next(element)));
      return name === "list" ? list : new Set(list);
    },
  };
}

const NUMBERS = ["tinyint", "smallint", "int", "float", "double"];
const TEXTS = ["text", "ascii", "uuid", "timeuuid", "inet"];

export function map(key: Codec, value: Codec, form: ValueOptions["map"]): Codec {
  const type = `map<${key.type}, ${value.type}>`;
  const isObject = form === "object" && TEXTS.includes(key.type);
  return {
    type,
    hasEmpty: true,
    put(writer, given) {
      const isPlain = typeof given === "object" && !(Symbol.iterator in given);
      // The keys of plain objects are always text.
      const keyed = NUMBERS.includes(key.type) ? Number : String;
      const pairs = given instanceof Map || Array.isArray(given) ? [...given as Iterable<[unknown, unknown]>]
        : isPlain ? Object.entries(given).map(([name, held]) => [keyed(name), held] as const)
        : misfit(given, `${type} takes a Map, an array of pairs or a plain object`);
      writer.int32(pairs.length);
      for (const [name, held] of pairs) {
        putPart(writer, key, name, ".key");
        putPart(writer, value, held, `[${String(name)}]`);
      }
    },
    get(cells, at, end) {
      const parts = new Parts(cells, at, end);
      const pairs: [any, any][] = [];
      each(parts, 8, () => pairs.push([parts.next(key), parts.next(value)]));
      return isObject ? Object.fromEntries(pairs) : new Map(pairs);
    },
  };
}

export function tuple(fields: readonly Codec[]): Codec {
  const type = `tuple<${fields.map((field) => field.type).join(", ")}>`;
  return {
    type,
    hasEmpty: true,
    put(writer, value) {
      if (!Array.isArray(value) || value.length !== fields.length) misfit(value, `${type} takes an array of ${fields.length} values`);
      fields.forEach((field, index) => putPart(writer, field, value[index], `[${index}]`, true));
    },
    get(cells, at, end) {
      const parts = new Parts(cells, at, end);
      return fields.map((field) => (parts.at < end ? parts.next(field) : null));
    },
  };
}

/** A user-defined type; fields that were added since a value was written are null. */
export function userType(type: string, fields: readonly (readonly [name: string, codec: Codec])[]): Codec {
  return {
    type,
    hasEmpty: true,
    put(writer, value) {
      if (typeof value !== "object" || Symbol.iterator in value) misfit(value, `${type} takes an object`);
      for (const name of Object.keys(value)) {
        if (!fields.some(([known]) => known === name)) throw new Misfit(`${type} has no field ${name}`);
      }
      for (const [name, codec] of fields) {
        putPart(writer, codec, Object.hasOwn(value, name) ? value[name] : null, `.${name}`, true);
      }
    },
    get(cells, at, end) {
      const parts = new Parts(cells, at, end);
      return Object.fromEntries(fields.map(([name, codec]) => [name, parts.at < end ? parts.next(codec) : null]));
    },
  };
}

/** A vector: a typed array of numbers where there is one, else an array. */
export function vector(element: Codec, dimension: number): Codec {
  const type = `vector<${element.type}, ${dimension}>`;
  const { width, array } = element;
  return {
    type,
    ...(width === undefined ? {} : { width: width * dimension, size: width * dimension }),
    put(writer, value) {
      const list = elements(value, type);
      if (list.length !== dimension) misfit(value, `${type} takes ${dimension} elements; ${list.length} are in`);
      list.forEach((part, index) => {
        const place = `[${index}]`;
        if (part === null || part === undefined) throw new Misfit(`${place} of ${type} is ${part}`);
        if (width !== undefined) return put(writer, element, part, place);
        const own = writer.fresh();
        put(own, element, part, place);
        putVint(writer, BigInt(own.length));
        writer.bytes(own.written);
      });
    },
    get(cells, at, end) {
      if (width === undefined) {
        const lengths = new VintReader(cells, at, end);
        return Array.from({ length: dimension }, () => {
          const length = Number(lengths.next());
          const start = lengths.at;
          lengths.at += length;
          if (lengths.at > end) throw new Malformed("too few bytes");
          return valueOf(element, cells, start, lengths.at);
        });
      }
      if (!array) return Array.from({ length: dimension }, (_, i) => element.get(cells, at + i * width, at + (i + 1) * width));
      const values = array.make(dimension);
      for (let i = 0; i < dimension; i++) values[i] = array.get(cells, at + i * width);
      return values;
    },
  };
}
