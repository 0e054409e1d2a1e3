// A node between client and node: passes frames on, but answers some requests with bytes of its own.
//
// A request is known by a mark in its text. Its rule names the frames to send, in hex, whose stream id is
// replaced by the request's own or, with `as`, by that of an earlier request. No frames: no answer at all.

import { once } from "node:events";
import { connect, createServer } from "node:net";

const HEADER = 9;

/**
 * @typedef {{ hex: string, as?: string }} Answer
 * @param {string} node
 */
export async function intercept(node) {
  const [host, port] = node.split(":");
  /** @type {Map<string, Answer[]>} */
  let rules = new Map();
  /** Stream ids of marked requests. @type {Map<string, Buffer>} */
  const streams = new Map();
  const sockets = new Set();
  const server = createServer((client) => {
    const tcp = connect(Number(port), host);
    sockets.add(client).add(tcp);
    client.setNoDelay(true);
    const end = () => {
      client.destroy();
      tcp.destroy();
      sockets.delete(client);
      sockets.delete(tcp);
    };
    for (const socket of [client, tcp]) socket.on("error", end).on("close", end);
    tcp.on("data", (bytes) => void client.write(bytes));
    let held = Buffer.alloc(0);
    client.on("data", (bytes) => {
      held = Buffer.concat([held, /** @type {Buffer} */ (bytes)]);
      while (held.length >= HEADER && held.length >= HEADER + held.readUInt32BE(5)) {
        const frame = held.subarray(0, HEADER + held.readUInt32BE(5));
        held = held.subarray(frame.length);
        const mark = [...rules.keys()].find((mark) => frame.includes(mark));
        if (mark === undefined) tcp.write(frame);
        else answer(client, mark, frame.subarray(2, 4));
      }
    });
  });
  /** @param {import("node:net").Socket} client @param {string} mark @param {Buffer} stream */
  function answer(client, mark, stream) {
    streams.set(mark, Buffer.from(stream));
    for (const { hex, as = mark } of rules.get(mark) ?? []) {
      const bytes = Buffer.from(hex, "hex");
      streams.get(as)?.copy(bytes, 2);
      client.write(bytes);
    }
  }
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port: own } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    contact: `127.0.0.1:${own}`,
    /** @param {Record<string, Answer[]>} given */
    set(given) {
      rules = new Map(Object.entries(given));
      streams.clear();
    },
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
