// The errors of cassandra-driver, made of those of this package, which stand in `cause`.

import { CqlError } from "../error.js";

export class DriverError extends Error {
  static override readonly name: string = "DriverError";
  info = "Cassandra Driver Error";

  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
  }
}

/** No node could be asked. */
export class NoHostAvailableError extends DriverError {
  static override readonly name: string = "NoHostAvailableError";
  readonly innerErrors: Readonly<Record<string, unknown>> = {};
}

/** What a server said. */
export class ResponseError extends DriverError {
  static override readonly name: string = "ResponseError";
  override info = "Represents an error message from the server";
  readonly code: number;

  constructor(code: number, message: string, cause?: unknown) {
    super(message, cause);
    this.code = code;
    if (cause instanceof CqlError) Object.assign(this, camelCounts(cause));
  }
}

/** The names that cassandra-driver gives to the facts of a timeout. */
function camelCounts({ details }: CqlError): Record<string, unknown> {
  const { required, received, alive, writeType, dataPresent } = details;
  const facts = { blockFor: required, required, received, alive, writeType, isDataPresent: dataPresent };
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}

export class DriverInternalError extends DriverError {
  static override readonly name: string = "DriverInternalError";
}
export class AuthenticationError extends DriverError {
  static override readonly name: string = "AuthenticationError";
}
export class ArgumentError extends DriverError {
  static override readonly name: string = "ArgumentError";
}
export class OperationTimedOutError extends DriverError {
  static override readonly name: string = "OperationTimedOutError";
  host: string | undefined;
}
export class NotSupportedError extends DriverError {
  static override readonly name: string = "NotSupportedError";
}
export class BusyConnectionError extends DriverError {
  static override readonly name: string = "BusyConnectionError";
}

/** An error as users of cassandra-driver expect it. */
export function driverError(error: unknown): unknown {
  if (!(error instanceof CqlError)) return error;
  const { kind, code, message } = error;
  if (kind === "auth" && code !== 0x2100) return new AuthenticationError(message, error);
  if (code !== 0 || kind === "server" || kind === "syntax") return new ResponseError(code, message, error);
  switch (kind) {
    case "transport":
    case "relay":
    case "unavailable": return new NoHostAvailableError(`All host(s) tried for query failed. ${message}`, error);
    case "timeout": return Object.assign(new OperationTimedOutError(message, error), { host: error.host });
    case "limit": return new BusyConnectionError(message, error);
    case "encode": return Object.assign(new TypeError(message), { cause: error });
    case "usage":
    case "config": return new ArgumentError(message, error);
    default: return new DriverInternalError(message, error);
  }
}
