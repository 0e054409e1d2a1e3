// Results in the shape of cassandra-driver.

import { pagingBytes, urlText } from "../options.js";
import type { Result } from "../result.js";
import type { Row } from "./codecs.js";
import { dataTypes } from "./types.js";

/** One page of rows; iterating asynchronously goes on to the others. */
export class ResultSet implements Iterable<Row>, AsyncIterable<Row> {
  static readonly name: string = "ResultSet";
  /** undefined where a statement has none. */
  readonly rows: Row[] | undefined;
  readonly rowLength: number | undefined;
  readonly columns: readonly { readonly name: string; readonly type: { readonly code: number; readonly info: null } }[] | null;
  /** Where the next page begins. */
  readonly pageState: string | null;
  readonly info: {
    readonly queriedHost: string | undefined;
    readonly triedHosts: Readonly<Record<string, null>>;
    readonly speculativeExecutions: 0;
    readonly achievedConsistency: number | undefined;
    readonly traceId: string | null;
    readonly warnings: readonly string[] | undefined;
    readonly customPayload: null;
    readonly isSchemaInAgreement: true;
  };
  /** Of `eachRow`, where there is another page. */
  nextPage: (() => void) | undefined = undefined;
  readonly #next: ((pageState: string) => Promise<ResultSet>) | undefined;
  readonly #isApplied: boolean | undefined;

  constructor(result: Result<Row>, consistency: number | undefined, next?: (pageState: string) => Promise<ResultSet>) {
    const hasRows = result.columns.length > 0;
    this.rows = hasRows ? result.rows() : undefined;
    this.rowLength = this.rows?.length;
    this.columns = hasRows ? result.columns.map(({ name, type }) => ({ name, type: { code: codeOf(type), info: null } })) : null;
    this.pageState = result.pagingState === undefined ? null : hexOf(pagingBytes(result.pagingState));
    this.info = {
      queriedHost: result.host, triedHosts: result.host ? { [result.host]: null } : {}, speculativeExecutions: 0,
      achievedConsistency: consistency, traceId: result.tracingId ?? null, customPayload: null, isSchemaInAgreement: true,
      warnings: result.warnings.length > 0 ? result.warnings : undefined,
    };
    this.#isApplied = result.applied;
    this.#next = next;
  }

  first(): Row | null {
    return this.rows?.[0] ?? null;
  }
  wasApplied(): boolean {
    return this.#isApplied ?? true;
  }
  isPaged(): boolean {
    return this.pageState !== null;
  }
  getPageState(): string | null {
    return this.pageState;
  }
  getColumns(): ResultSet["columns"] {
    return this.columns;
  }
  [Symbol.iterator](): Iterator<Row> {
    return (this.rows ?? [])[Symbol.iterator]();
  }
  async *[Symbol.asyncIterator](): AsyncIterableIterator<Row> {
    let page: ResultSet = this;
    for (;;) {
      yield* page.rows ?? [];
      if (page.pageState === null || !this.#next) return;
      page = await this.#next(page.pageState);
    }
  }
}

function codeOf(type: string): number {
  const name = /^[a-z]+/.exec(type)?.[0] as keyof typeof dataTypes | undefined;
  return type.includes(".") && !type.includes("<") ? dataTypes.udt : (name && dataTypes[name]) ?? dataTypes.custom;
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** This package's paging state of one of cassandra-driver, which are hexadecimal digits or bytes. */
export function pagingOf(state: string | Uint8Array | null | undefined): string | undefined {
  if (state === null || state === undefined) return undefined;
  if (typeof state !== "string") return urlText(state);
  return urlText(Uint8Array.from(state.match(/../g) ?? [], (digits) => parseInt(digits, 16)));
}
