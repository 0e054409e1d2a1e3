// Byte streams from a pair of WHATWG streams, as Workers and Deno have them.

import type { FailureReason, Socket, SocketEvents } from "./host.js";

/** Bytes that are asked for at once; less would mean a call into the module for every few kilobytes. */
const READ_MAX = 64 << 10;

export interface Duplex {
  readable: ReadableStream<Uint8Array>;
  writable: WritableStream<Uint8Array>;
  close(): unknown;
}

/** Carries a stream that opens later. `reasonOf` sorts what the host throws. */
export function carry(opening: Promise<Duplex>, events: SocketEvents, reasonOf: (error: unknown) => FailureReason): Socket {
  let duplex: Duplex | undefined;
  let writer: WritableStreamDefaultWriter<Uint8Array> | undefined;
  let isOver = false;
  const fail = (error: unknown) => {
    if (isOver) return;
    isOver = true;
    events.failed(reasonOf(error), error instanceof Error ? error.message : String(error));
    quietly(() => duplex?.close());
  };
  const run = async () => {
    duplex = await opening;
    if (isOver) return quietly(() => duplex?.close());
    writer = duplex.writable.getWriter();
    events.opened();
    await read(duplex.readable, (bytes) => isOver || events.data(bytes));
    if (!isOver) events.closed();
  };
  run().catch(fail);
  const close = async () => {
    isOver = true;
    // Waits for what was written before.
    await writer?.close().catch(() => {});
    quietly(() => duplex?.close());
  };
  return {
    send: (bytes, sent) => void writer?.write(bytes).then(sent, fail),
    close: () => void close(),
    abort: () => {
      isOver = true;
      quietly(() => duplex?.close());
    },
  };
}

/** Into one buffer again and again: the shell copies what it is told. */
async function read(readable: ReadableStream<Uint8Array>, take: (bytes: Uint8Array) => void) {
  const reader = readable.getReader({ mode: "byob" });
  let buffer = new ArrayBuffer(READ_MAX);
  for (;;) {
    const { value, done } = await reader.read(new Uint8Array(buffer));
    if (done || !value) return;
    take(value);
    buffer = value.buffer as ArrayBuffer;
  }
}

function quietly(action: () => unknown) {
  try {
    const done = action();
    if (done instanceof Promise) done.catch(() => {});
  } catch {
    // It was closed already.
  }
}
