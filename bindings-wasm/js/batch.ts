// Several statements as one request.

import { Writer } from "./bytes.js";
import { CqlError } from "./error.js";
import type { RunOptions } from "./options.js";
import { Query } from "./query.js";
import { Statement, type Values } from "./statement.js";

/** A template, a prepared statement or a text with its values, or a text without. */
export type BatchPart = Query<any> | string | readonly [statement: Statement<any, any> | string, values?: Values];

export interface BatchOptions extends Omit<RunOptions, "pageSize" | "pagingState"> {
  /** `"logged"` by default: all or nothing. */
  readonly type?: "logged" | "unlogged" | "counter" | undefined;
}

const TYPES = ["logged", "unlogged", "counter"];

/** The number of a batch's type. */
export function batchType({ type = "logged" }: BatchOptions): number {
  const number = TYPES.indexOf(type);
  if (number < 0) throw new CqlError("usage", `no batch of type ${type}; there are ${TYPES.join(", ")}`);
  return number;
}

/** Writes the parts, those with values prepared. */
export async function putParts(
  writer: Writer,
  parts: readonly BatchPart[],
  prepare: (text: string) => Promise<Statement<any, any>>,
): Promise<void> {
  // All at once: what is not prepared yet goes out together.
  const ready = await Promise.all(parts.map(async (part) => {
    const [what, values] = part instanceof Query ? [part.text, part.values] : Array.isArray(part) ? part : [part];
    if (typeof what !== "string" && !(what instanceof Statement)) {
      throw new CqlError("usage", "a part of a batch is a statement, or a list of a statement and its values");
    }
    const isPlain = typeof what === "string" && (values === undefined || (Array.isArray(values) && values.length === 0));
    return { what: typeof what === "string" && !isPlain ? await prepare(what) : what, values };
  }));
  for (const { what, values } of ready) {
    if (what instanceof Statement) {
      what.putInto(writer, values);
    } else {
      writer.int32(-1, true);
      writer.int32(0, true);
      writer.padded(what);
    }
  }
}
