// From the text of a type to its codec.

import { CqlError } from "../error.js";
import type { Codec, ValueOptions } from "./codec.js";
import { boolean, double, float, int, long, smallint, tinyint } from "./numbers.js";
import { ascii, blob, text, uuid } from "./texts.js";
import { timestamp } from "./times.js";

/** The codecs of one database. */
export class Types {
  readonly #known = new Map<string, Codec>();

  constructor(options: ValueOptions = {}) {
    const { bigint } = options;
    const simple = [
      ascii, text, tinyint, smallint, int, float, double, boolean, long("bigint", bigint), long("counter", bigint),
      blob("blob", options.blob), uuid("uuid"), uuid("timeuuid"), timestamp(options.timestamp),
    ];
    for (const codec of simple) this.#known.set(codec.type, codec);
  }

  /** The codec of a type by its text. */
  codec(type: string): Codec {
    const known = this.#known.get(type);
    if (known) return known;
    throw new CqlError("usage", `values of type ${type} are not supported yet`);
  }
}
