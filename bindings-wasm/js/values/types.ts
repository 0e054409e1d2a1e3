// From the text of a type to its codec.
//
// The module writes types as CQL does, and user-defined ones with their fields:
// `{"keyspace"."name" "field" type "field" type}`, a quotation mark in a name doubled.

import type { Column } from "../module.js";
import { boolean, double, float, int, long, smallint, tinyint } from "./numbers.js";
import { map, sequence, tuple, userType, vector } from "./collections.js";
import { type Codec, type ValueOptions } from "./codec.js";
import { duration } from "./duration.js";
import { inet } from "./inet.js";
import { date, time } from "./local.js";
import { ascii, blob, text, uuid } from "./texts.js";
import { timestamp } from "./times.js";
import { decimal, varint } from "./varint.js";

const TOKEN = /\s*("(?:[^"]|"")*"|'[^']*'|type 0x\w+|\w+|[<>{},.])/y;

/** What is known of the rows of a result before they come. */
export interface Shape {
  readonly columns: readonly Column[];
  readonly names: readonly string[];
  readonly codecs: readonly Codec[];
  /** Whether one of the names is that to which assigning does something else. */
  readonly isOdd: boolean;
  /** Makes an empty row: a plain object, with room for the columns. */
  readonly Row: new () => Record<string, any>;
}

/** Shapes that are kept by their columns. */
const SHAPES_MAX = 512;

/** The codecs of one database. */
export class Types {
  readonly #options: ValueOptions;
  readonly #known = new Map<string, Codec>();
  /** By the text of their columns. */
  readonly #shapes = new Map<string, Shape>();

  readonly #replace: (codec: Codec) => Codec;
  readonly #rowPrototype: object;

  /** @param replace what stands for a codec, in the codecs made of it too; @param rowPrototype what rows inherit from */
  constructor(options: ValueOptions = {}, replace = (codec: Codec): Codec => codec, rowPrototype: object = Object.prototype) {
    this.#options = options;
    this.#replace = replace;
    this.#rowPrototype = rowPrototype;
    const simple = [
      ascii, text, tinyint, smallint, int, float, double, boolean, inet, long("bigint", options.bigint),
      long("counter", options.bigint), varint(options.bigint), decimal(options.decimal), blob("blob", options.blob),
      uuid("uuid"), uuid("timeuuid"), timestamp(options), date(options), time(options), duration(options),
    ];
    for (const codec of simple) this.#known.set(codec.type, replace(codec));
  }

  /** The codec of a type by its text. What is not known is bytes. */
  codec(type: string): Codec {
    let codec = this.#known.get(type);
    if (!codec) this.#known.set(type, (codec = this.#parse(type)));
    return codec;
  }

  /** The shape of rows with these columns, as the module tells them. */
  shape(columns: readonly Column[]): Shape {
    const text = JSON.stringify(columns);
    const shape = this.#shapes.get(text) ?? this.#makeShape(columns);
    if (this.#shapes.size >= SHAPES_MAX) this.#shapes.clear();
    this.#shapes.set(text, shape);
    return shape;
  }

  #makeShape(columns: readonly Column[]): Shape {
    const codecs = columns.map(({ type }) => this.codec(type));
    // As engines keep the names of properties, which makes their use as such faster.
    const names = columns.map(({ name }) => Object.keys({ [name]: 0 })[0]!);
    // Engines learn from the first objects of a constructor how much room the others need.
    const Row = function () {} as unknown as Shape["Row"];
    Row.prototype = this.#rowPrototype;
    const told = names.map((name, index) => ({ name, type: codecs[index]!.type }));
    return { columns: told, names, codecs, isOdd: names.includes("__proto__"), Row };
  }

  #parse(type: string): Codec {
    const pattern = new RegExp(TOKEN);
    const next = (): string => pattern.exec(type)?.[1] ?? "";
    const name = (): string => next().slice(1, -1).replaceAll('""', '"');
    const parse = (token: string): Codec => this.#known.get(token) ?? this.#replace(make(token));
    const make = (token: string): Codec => {
      if (token === "{") {
        const keyspace = name();
        next();
        const full = `${keyspace}.${name()}`;
        const fields: [string, Codec][] = [];
        for (let field = next(); field.startsWith('"'); field = next()) {
          fields.push([field.slice(1, -1).replaceAll('""', '"'), parse(next())]);
        }
        return userType(full, fields);
      }
      if (!/^(list|set|map|tuple|vector)$/.test(token)) return blob(token, this.#options.blob);
      const inner: Codec[] = [];
      let dimension = 0;
      // Behind each comes a comma, or the end.
      for (let separator = next(); separator === "<" || separator === ","; separator = next()) {
        const part = next();
        if (/^\d/.test(part)) dimension = Number(part);
        else inner.push(parse(part));
      }
      const [first, second] = inner as [Codec, Codec];
      switch (token) {
        case "map": return map(first, second, this.#options.map);
        case "tuple": return tuple(inner);
        case "vector": return vector(first, dimension);
        default: return sequence(token as "list" | "set", first);
      }
    };
    return parse(next());
  }
}
