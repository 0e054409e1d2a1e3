// A plain WebSocket-to-TCP pipe, as endpoints of others are: sub-protocol `cql`, the target in the query.
//
// The path says how it treats the bytes that come from the node; `/` passes them on as they come.

import { once } from "node:events";
import { connect } from "node:net";
import { WebSocketServer } from "ws";

/** Cuts what came from the node into messages, by the path. @type {Record<string, (bytes: Buffer) => Buffer[]>} */
const CUTS = {
  "/": (bytes) => [bytes],
  "/bytes": (bytes) => Array.from(bytes, (byte) => Buffer.of(byte)),
  // One of them is empty.
  "/five": (bytes) => {
    const ends = [0.2, 0.4, 0.6, 0.8].map((part) => Math.floor(bytes.length * part));
    return [0, ...ends.slice(0, 2), ends[1], ...ends.slice(2)].map((start, at, starts) => bytes.subarray(start, starts[at + 1]));
  },
  "/uneven": (bytes) => {
    const pieces = [];
    for (let at = 0; at < bytes.length; at += 70_010) {
      pieces.push(bytes.subarray(at, at + 70_000), bytes.subarray(at + 70_000, at + 70_010));
    }
    return pieces;
  },
};

/**
 * @returns {Promise<{ url: string, stop: () => void }>}
 */
export async function pipe() {
  const server = new WebSocketServer({
    host: "127.0.0.1",
    port: 0,
    handleProtocols: (/** @type {Set<string>} */ offered) => (offered.has("cql") ? "cql" : false),
    verifyClient: (/** @type {{ req: import("node:http").IncomingMessage }} */ { req }, /** @type {any} */ answer) =>
      req.url?.startsWith("/refuse") ? answer(false, 401, "no token") : answer(true),
  });
  await once(server, "listening");
  server.on("connection", (socket, request) => {
    const url = new URL(request.url ?? "/", "ws://pipe");
    socket.on("error", () => {});
    if (url.pathname === "/close") return socket.close(4003, "this target is not allowed");
    if (url.pathname === "/text") {
      socket.on("message", () => socket.send("no bytes"));
      return;
    }
    serve(socket, url);
  });
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    url: `ws://127.0.0.1:${port}`,
    stop: () => {
      for (const client of server.clients) client.terminate();
      server.close();
    },
  };
}

/** @param {import("ws").WebSocket} socket @param {URL} url */
function serve(socket, url) {
  const target = /^\[?([^\]]*)\]?:(\d+)$/.exec(url.searchParams.get("target") ?? "");
  if (!target) return socket.close(4000, "no target");
  const cut = CUTS[url.pathname] ?? CUTS["/"];
  const isJoining = url.pathname === "/joined";
  const tcp = connect(Number(target[2]), target[1]);
  tcp.setNoDelay(true);
  /** @type {Buffer[]} */
  let held = [];
  const flush = () => {
    if (held.length > 0) socket.send(Buffer.concat(held));
    held = [];
  };
  tcp.on("data", (data) => {
    const bytes = /** @type {Buffer} */ (data);
    if (isJoining) {
      // Frames of several answers in one message.
      if (held.push(bytes) === 1) setTimeout(flush, 5);
      return;
    }
    if (url.pathname === "/ping") socket.ping();
    for (const piece of cut(bytes)) socket.send(piece);
    if (socket.bufferedAmount > 1 << 20) {
      tcp.pause();
      setTimeout(() => tcp.resume(), 5);
    }
  });
  tcp.on("end", () => (flush(), socket.close(1000)));
  tcp.on("error", (error) => socket.close(4002, error.message.slice(0, 100)));
  socket.on("message", (bytes) => void tcp.write(/** @type {Buffer} */ (bytes)));
  socket.on("close", () => tcp.destroy());
}
