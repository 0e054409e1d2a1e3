// How a request is run.

import type { Writer } from "./bytes.js";
import { CqlError } from "./error.js";

/** How many nodes have to agree. */
export type Consistency =
  | "ANY" | "ONE" | "TWO" | "THREE" | "QUORUM" | "ALL" | "LOCAL_QUORUM" | "EACH_QUORUM" | "SERIAL" | "LOCAL_SERIAL"
  | "LOCAL_ONE";

export interface RequestOptions {
  /** Gives the request up. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for the request with all its attempts. */
  readonly timeout?: number | undefined;
}

export interface RunOptions extends RequestOptions {
  /** Rows of a page. */
  readonly pageSize?: number | undefined;
  /** Where an earlier page ended: its `pagingState`. */
  readonly pagingState?: string | undefined;
  /** Running it twice does the same as running it once, so it may be repeated. */
  readonly idempotent?: boolean | undefined;
}

export interface PageOptions {
  /** Pages that are asked for before they are wanted; 1 by default, at most 8. */
  readonly prefetch?: number;
}

/** Where a page ended, as text that can be handed to a user and back. */
export function pagingText(state: Uint8Array): string {
  let binary = "";
  for (const byte of state) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The bytes of such a text. */
export function pagingBytes(text: unknown): Uint8Array {
  try {
    if (typeof text !== "string") throw new TypeError("not a string");
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(binary, (char) => char.charCodeAt(0));
  } catch (cause) {
    throw new CqlError("usage", "pagingState is not what a result's pagingState was", { cause });
  }
}

/** Writes the paging state and tells the other options as numbers, in the order of the module's exports. */
export function putOptions(writer: Writer, { timeout = 0, pageSize = 0, pagingState, idempotent = false }: RunOptions): number[] {
  if (pagingState !== undefined) writer.bytes(pagingBytes(pagingState));
  return [timeout, pageSize, writer.length, idempotent ? 1 : 0];
}
