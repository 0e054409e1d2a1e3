// How a request is run.

import type { Writer } from "./bytes.js";
import { CqlError } from "./error.js";

/** By their numbers in the protocol. */
export const LEVELS = [
  "ANY", "ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_QUORUM", "EACH_QUORUM", "SERIAL", "LOCAL_SERIAL", "LOCAL_ONE",
] as const;

/** How many replicas have to answer. */
export type Consistency = (typeof LEVELS)[number];

const SERIAL_LEVELS = ["SERIAL", "LOCAL_SERIAL"] as const;

export interface RequestOptions {
  /** Gives the request up. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for the request with all its attempts, above 0. */
  readonly timeout?: number | undefined;
}

export interface RunOptions extends RequestOptions {
  /** Rows of a page; `Infinity` for all in one. */
  readonly pageSize?: number | undefined;
  /** Where an earlier page ended: its `pagingState`. */
  readonly pagingState?: string | undefined;
  /** Running it twice does the same as running it once, so it may be repeated. */
  readonly idempotent?: boolean | undefined;
  /** How many replicas have to answer. */
  readonly consistency?: Consistency | undefined;
  /** The level of the conditional part. */
  readonly serialConsistency?: "SERIAL" | "LOCAL_SERIAL" | undefined;
  /** The write's timestamp in microseconds since 1970. */
  readonly timestamp?: bigint | undefined;
  /** Asks the server to trace the request. */
  readonly traced?: boolean | undefined;
}

export interface PageOptions {
  /** Pages that are asked for before they are wanted; 1 by default, at most 8. */
  readonly prefetch?: number | undefined;
}

/** The names that options of any request may have, of a statement's run, and of a batch. */
export const REQUEST = ["signal", "timeout"];
const STATEMENTS = [...REQUEST, "idempotent", "consistency", "serialConsistency", "timestamp", "traced"];
const RUN = [...STATEMENTS, "pageSize", "pagingState"];
export const BATCH = [...STATEMENTS, "type"];

/** Refuses a name that means nothing, so that a slip of the pen is seen. */
export function checkNames(options: object, known: readonly string[]): void {
  for (const name of Object.keys(options)) {
    if (!known.includes(name) && options[name as keyof object] !== undefined) {
      throw new CqlError("usage", `no option ${name}; there are ${known.join(", ")}`);
    }
  }
}

/** Bytes as text for URLs and headers; a paging state, so that it can be handed to a user and back. */
export function urlText(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The bytes of a paging state. */
export function pagingBytes(text: unknown): Uint8Array {
  try {
    if (typeof text !== "string") throw new TypeError("not a string");
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(binary, (char) => char.charCodeAt(0));
  } catch (cause) {
    throw new CqlError("usage", "pagingState is not what a result's pagingState was", { cause });
  }
}

/** A request that says nothing. */
export const NO_OPTIONS: RunOptions = Object.freeze({});

const NO_NUMBERS = { numbers: [0, 0, 0, 0], state: undefined };

/** Options as the parameters of the module's exports, in their order, and the bytes of the paging state. */
export function numbersOf(options: RunOptions, names = RUN): { numbers: readonly number[]; state: Uint8Array | undefined } {
  if (options === NO_OPTIONS) return NO_NUMBERS;
  checkNames(options, names);
  const { timeout, pageSize, pagingState, timestamp, consistency, serialConsistency } = options;
  const flags = (options.idempotent ? 1 : 0) | (timestamp === undefined ? 0 : 2) | (options.traced ? 4 : 0)
    | (levelOf(LEVELS, consistency) << 8) | (levelOf(SERIAL_LEVELS, serialConsistency) << 16);
  const state = pagingState === undefined ? undefined : pagingBytes(pagingState);
  return { numbers: [limitOf("timeout", timeout), limitOf("pageSize", pageSize), flags, state?.length ?? 0], state };
}

/** A limit as the module takes it: 0 for none of its own. */
function limitOf(name: string, limit: number | undefined): number {
  if (limit === undefined) return 0;
  if (typeof limit !== "number" || !(limit > 0)) throw new CqlError("usage", `${name} is a number above 0, not ${limit}`);
  return Math.min(Math.ceil(limit), 2 ** 32 - 1);
}

/** Writes the options that are no numbers. */
export function putOptions(writer: Writer, { timestamp }: RunOptions, state: Uint8Array | undefined): void {
  if (timestamp !== undefined) writer.int64(BigInt(timestamp), true);
  if (state) writer.bytes(state);
}

/** The place of a level, counted from 1; 0 for none. */
function levelOf(levels: readonly string[], level: string | undefined): number {
  const place = level === undefined ? 0 : levels.indexOf(level) + 1;
  if (level !== undefined && place === 0) throw new CqlError("usage", `no consistency ${level}; there are ${levels.join(", ")}`);
  return place;
}
