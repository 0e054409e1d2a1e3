// Byte streams over WebSockets, in any host that has the class.
//
// A message's borders mean nothing: bytes come out in the order in which they came in. A text message
// is a fault of the peer. What the browser queues is bounded: `sent` waits until the queue is short.

import { CqlError } from "../error.js";
import { urlText } from "../options.js";
import type { FailureReason, ShardWish, SocketOptions, Sockets, WebSocketClass } from "./host.js";

/** Bytes that may wait in the host's queue before a send counts as not yet taken. */
const QUEUED_MAX = 256 << 10;

/** Longest message that is sent; endpoints refuse what is much longer. */
const MESSAGE_MAX = 256 << 10;

/** A WebSocket's `readyState` while it takes messages. */
const OPEN = 1;

/** Close code for a message of a type that is not accepted: clients may not send 1003. */
const UNSUPPORTED_DATA = 4003;

/** How it is told that the relay does not allow a target: before a WebSocket is open in words of the host's own. */
const FORBIDDEN = / 403\b|code 4006/;

const PROTOCOLS = { mux: "cql.mux.v1", cql: "cql" };

/** Sockets that lead through the relay of `options`. */
export function webSockets(options: SocketOptions): Sockets {
  const relay = options.relay;
  if (!relay) {
    throw new CqlError("config", "this host opens no TCP connections: set relay to the URL of a relay (messina relay)");
  }
  const Class = options.WebSocket ?? (globalThis as { WebSocket?: WebSocketClass }).WebSocket;
  if (!Class) {
    throw new CqlError("config", "this host has no WebSocket: use Node 22 or later, node --experimental-websocket, "
      + "or give the class of the npm package ws as the option WebSocket");
  }
  const protocol = relay.protocol ?? "mux";
  return (host, port, events, wish) => {
    const url = protocol === "mux" ? relay.url : withTarget(relay.url, host, port, wish);
    const stream = new Stream(Class, url, events);
    stream.open(PROTOCOLS[protocol], options.token);
    return stream;
  };
}

class Stream {
  #socket: InstanceType<WebSocketClass> | undefined;
  #isOpen = false;
  /** Nothing more is reported. */
  #isOver = false;
  /** What an error event told. */
  #trouble = "";
  #waiting: (() => void)[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly Class: WebSocketClass,
    readonly url: string,
    readonly events: Parameters<Sockets>[2],
  ) {}

  /** Asks for a token, then opens the WebSocket. */
  async open(protocol: string, token: SocketOptions["token"]) {
    try {
      const text = typeof token === "function" ? await token() : token;
      if (this.#isOver) return;
      const protocols = text === undefined ? [protocol] : [protocol, `token.${urlText(new TextEncoder().encode(text))}`];
      const socket = new this.Class(this.url, protocols);
      this.#socket = socket;
      socket.binaryType = "arraybuffer";
      socket.addEventListener("open", () => this.#opened());
      socket.addEventListener("message", ({ data }) => this.#received(data));
      socket.addEventListener("error", (event) => this.#broke(event));
      socket.addEventListener("close", (event) => this.#closed(event));
    } catch (error) {
      // Not before the caller holds this stream.
      await undefined;
      this.#fail("other", `no WebSocket to ${this.#place()}: ${textOf(error)}`);
    }
  }

  send(bytes: Uint8Array, sent: () => void) {
    const socket = this.#socket;
    if (!socket || this.#isOver) return;
    // The peer is closing it: the close event follows, and a browser would complain of each send.
    if ((socket.readyState ?? OPEN) !== OPEN) return;
    try {
      for (let at = 0; at < bytes.length; at += MESSAGE_MAX) socket.send(bytes.subarray(at, at + MESSAGE_MAX));
    } catch (error) {
      this.#fail("reset", `the WebSocket to ${this.#place()} takes nothing: ${textOf(error)}`);
      return;
    }
    if ((socket.bufferedAmount ?? 0) <= QUEUED_MAX) sent();
    else this.#wait(sent);
  }

  close() {
    this.#end();
    // Sends what is queued first.
    this.#socket?.close(1000);
  }

  abort() {
    this.#end();
    if (this.#socket?.terminate) this.#socket.terminate();
    else this.#socket?.close();
  }

  #opened() {
    if (this.#isOver) return;
    this.#isOpen = true;
    this.events.opened();
  }

  #received(data: unknown) {
    if (this.#isOver) return;
    if (ArrayBuffer.isView(data)) {
      this.events.data(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    } else if (isArrayBuffer(data)) {
      this.events.data(new Uint8Array(data));
    } else {
      this.#socket?.close(UNSUPPORTED_DATA, "binary messages only");
      this.#fail("other", `${this.#place()} sent a ${typeof data === "string" ? "text" : "strange"} message`);
    }
  }

  /** Most hosts tell nothing here; the close event that follows tells the code. */
  #broke(event: { message?: unknown; error?: unknown }) {
    this.#trouble = textOf(event.error ?? event.message ?? "");
    // Where an error is the last event, nobody would hear of it otherwise.
    if (!this.#isOver) setTimeout(() => this.#lost(this.#trouble), 0);
  }

  #closed({ code, reason, wasClean }: { code?: number; reason?: string; wasClean?: boolean }) {
    const closed = `close code ${code || 1006}${reason ? `: ${reason}` : ""}`;
    const text = this.#trouble ? `${this.#trouble}, ${closed}` : closed;
    if (this.#isOpen && (code === 1000 || code === 1001) && wasClean !== false) {
      if (this.#isOver) return;
      this.#end();
      this.events.closed();
    } else {
      this.#lost(text);
    }
  }

  /** The WebSocket broke, or was never open; of that browsers, Node and Vercel tell nothing. */
  #lost(text: string) {
    const reason = FORBIDDEN.test(text) ? "forbidden" : this.#isOpen ? "reset" : "refused";
    this.#fail(reason, `${this.#place()} ${this.#isOpen ? "closed the WebSocket" : "let no WebSocket open"}${text && ` (${text})`}`);
  }

  /** Without the query, which names targets. */
  #place() {
    return `the relay ${this.url.split("?")[0]}`;
  }

  #fail(reason: FailureReason, text: string) {
    if (this.#isOver) return;
    this.#end();
    this.events.failed(reason, text);
  }

  #end() {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#waiting = [];
  }

  /** No event tells that the queue is shorter, so it is looked at now and then. */
  #wait(sent: () => void) {
    this.#waiting.push(sent);
    if (this.#waiting.length > 1) return;
    const look = () => {
      if ((this.#socket?.bufferedAmount ?? 0) > QUEUED_MAX) {
        this.#timer = setTimeout(look, 4);
        return;
      }
      for (const tell of this.#waiting.splice(0)) tell();
    };
    this.#timer = setTimeout(look, 1);
  }
}

/** Also of one that another realm made. */
function isArrayBuffer(data: unknown): data is ArrayBuffer {
  return Object.prototype.toString.call(data) === "[object ArrayBuffer]";
}

/** The relay's URL with what this stream wants in its query, which endpoints of others ignore. */
function withTarget(relay: string, host: string, port: number, wish?: ShardWish) {
  const url = new URL(relay);
  url.searchParams.set("target", host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`);
  if (IS_WHOLE && wish?.shard !== undefined) {
    url.searchParams.set("shard", `${wish.shard}`);
    url.searchParams.set("of", `${wish.of}`);
  }
  return url.href;
}

function textOf(error: unknown) {
  return error instanceof Error ? error.message : String(error);
}
