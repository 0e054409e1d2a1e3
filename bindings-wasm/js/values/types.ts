// From the text of a type to its codec.
//
// The module writes types as CQL does, and user-defined ones with their fields:
// `{"keyspace"."name" "field" type "field" type}`, a quotation mark in a name doubled.

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

/** The codecs of one database. */
export class Types {
  readonly #options: ValueOptions;
  readonly #known = new Map<string, Codec>();

  constructor(options: ValueOptions = {}) {
    this.#options = options;
    const simple = [
      ascii, text, tinyint, smallint, int, float, double, boolean, inet, long("bigint", options.bigint),
      long("counter", options.bigint), varint(options.bigint), decimal(options.decimal), blob("blob", options.blob),
      uuid("uuid"), uuid("timeuuid"), timestamp(options), date(options), time(options), duration(options),
    ];
    for (const codec of simple) this.#known.set(codec.type, codec);
  }

  /** The codec of a type by its text. What is not known is bytes. */
  codec(type: string): Codec {
    let codec = this.#known.get(type);
    if (!codec) this.#known.set(type, (codec = this.#parse(type)));
    return codec;
  }

  #parse(type: string): Codec {
    const pattern = new RegExp(TOKEN);
    const next = (): string => pattern.exec(type)?.[1] ?? "";
    const name = (): string => next().slice(1, -1).replaceAll('""', '"');
    const parse = (token: string): Codec => {
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
      if (!/^(list|set|map|tuple|vector)$/.test(token)) return this.#known.get(token) ?? blob(token, this.#options.blob);
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
