// The one class of errors.

/** Who is at fault. */
export type CqlErrorKind =
  | "aborted" | "auth" | "bug" | "config" | "decode" | "encode" | "limit" | "protocol" | "relay" | "server"
  | "syntax" | "timeout" | "transport" | "unavailable" | "usage";

/** What is known besides kind and message. */
export interface CqlErrorFacts {
  readonly code?: number;
  readonly host?: string | undefined;
  readonly shard?: number | undefined;
  readonly attempts?: number;
  readonly applied?: boolean;
  readonly cause?: unknown;
}

/** Kinds that pass by themselves. */
const PASSING: ReadonlySet<CqlErrorKind> = new Set(["limit", "relay", "timeout", "transport", "unavailable"]);

/** The server's errors that pass by themselves: overloaded, bootstrapping, write and read timeouts. */
const PASSING_CODES: ReadonlySet<number> = new Set([0x1001, 0x1002, 0x1100, 0x1200]);

/** What went wrong. */
export class CqlError extends Error {
  override readonly name: string;
  /** Who is at fault. */
  readonly kind: CqlErrorKind;
  /** The server's number; 0 if the error is not the server's. */
  readonly code: number;
  /** The node that was asked last, if one was. */
  readonly host: string | undefined;
  /** The shard of that node. */
  readonly shard: number | undefined;
  /** How often the request was sent. */
  readonly attempts: number;
  /** Whether a write may have taken effect in spite of the error. */
  readonly applied: boolean;

  constructor(kind: CqlErrorKind, message: string, facts: CqlErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    // What the platform's own aborted promises carry.
    this.name = kind === "aborted" ? "AbortError" : "CqlError";
    this.kind = kind;
    this.code = facts.code ?? 0;
    this.host = facts.host;
    this.shard = facts.shard;
    this.attempts = facts.attempts ?? 0;
    this.applied = facts.applied ?? false;
  }

  /** Whether the same request may succeed if it is sent again, and does no harm then. */
  get retryable(): boolean {
    return !this.applied && (PASSING.has(this.kind) || PASSING_CODES.has(this.code));
  }
}
