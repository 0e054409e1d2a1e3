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
  readonly transient?: boolean;
  readonly details?: CqlErrorDetails;
  readonly cause?: unknown;
}

/** What a server told beside the text, as `received`, `required`, `writeType`. */
export type CqlErrorDetails = Readonly<Record<string, string | number | boolean>>;

/** What went wrong. */
export class CqlError extends Error {
  static override readonly name: string = "CqlError";
  declare readonly name: string;
  /** Who is at fault. */
  declare readonly kind: CqlErrorKind;
  /** The server's number; 0 if the error is not the server's. */
  declare readonly code: number;
  /** The node that was asked last, if one was. */
  declare readonly host: string | undefined;
  /** The shard of that node. */
  declare readonly shard: number | undefined;
  /** How often the request was sent. */
  declare readonly attempts: number;
  /** Whether a write may have taken effect in spite of the error. */
  declare readonly applied: boolean;
  /** Whether the same request may go well at another time, and cannot have taken effect yet. */
  declare readonly retryable: boolean;
  /** What the server told beside the text, as `received`, `required`, `writeType`. */
  declare readonly details: CqlErrorDetails;

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
    this.retryable = facts.transient === true && !this.applied;
    this.details = facts.details ?? {};
  }
}
