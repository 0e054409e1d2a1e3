// Sockets of Node.

import { connect } from "node:net";

/** @type {Record<string, string>} */
const REASONS = {
  ENOTFOUND: "resolve", EAI_AGAIN: "resolve", ECONNREFUSED: "refused", ECONNRESET: "reset", EPIPE: "reset",
  EHOSTUNREACH: "unreachable", ENETUNREACH: "unreachable", ETIMEDOUT: "timeout",
};

/** @type {import("./index.d.ts").Sockets} */
export function tcp(host, port, events) {
  const socket = connect({ host, port, noDelay: true });
  socket.on("connect", events.opened);
  socket.on("data", events.data);
  socket.on("end", events.closed);
  socket.on("close", events.closed);
  socket.on("error", (error) => events.failed(REASONS[/** @type {any} */ (error).code] ?? "other"));
  return {
    send: (bytes, sent) => void socket.write(bytes, (error) => error || sent()),
    close: () => socket.destroySoon(),
    abort: () => void socket.destroy(),
  };
}
