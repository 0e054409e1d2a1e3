// The one class of errors.

/**
 * What went wrong and who is at fault.
 *
 * `kind` says who; `code` is the server's number, 0 for errors that are not the server's; `applied`
 * says whether a write may have taken effect all the same.
 */
export class CqlError extends Error {
  /**
   * @param {import("./index.d.ts").CqlErrorKind} kind
   * @param {string} message
   * @param {{ code?: number, applied?: boolean, transient?: boolean, host?: string, shard?: number, attempts?: number,
   *   details?: Record<string, string | number | boolean>, cause?: unknown }} [facts]
   */
  constructor(kind, message, { code = 0, applied = false, transient = false, host, shard, attempts = 0, details = {}, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = kind === "aborted" ? "AbortError" : "CqlError";
    this.kind = kind;
    this.code = code;
    this.applied = applied;
    this.retryable = transient && !applied;
    this.host = host;
    this.shard = shard;
    this.attempts = attempts;
    this.details = details;
  }
}
