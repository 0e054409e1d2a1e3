// One channel of a tunnel (`cql.mux.v1`) as the client of relay.mjs has it: bytes become frames, and frames bytes. It
// is no model of a client: whatever the relay does wrong ends it.

const HEADER = 7;
const OPEN = 1, OPENED = 2, DATA = 3, CREDIT = 4, CLOSE = 6;

/** Longest payload of a frame with data. */
const DATA_MAX = 16 << 10;

/** Bytes that each end may send before anything was granted. */
const EARLY_CREDIT = 4 << 10;

/** Bytes that the relay may have under way to this end. */
const WINDOW = 1 << 20;

const NOTHING = new Uint8Array(0);

export class Channel {
  #credit = EARLY_CREDIT;
  #unreturned = 0;
  /** Waits for credit. */
  #waiting = NOTHING;
  /** The beginning of a frame. */
  #part = NOTHING;

  /**
   * @param {(message: Uint8Array<ArrayBuffer>) => void} send
   * @param {(count: number) => void} received
   */
  constructor(send, received) {
    this.send = send;
    this.received = received;
  }

  /** @param {string} target */
  open(target) {
    const wish = new Uint8Array(5);
    this.send(joined([frame(OPEN, joined([wish, new TextEncoder().encode(target)])), frame(CREDIT, number(WINDOW - EARLY_CREDIT))]));
  }

  /** @param {Uint8Array<ArrayBuffer>} bytes */
  write(bytes) {
    this.#waiting = this.#waiting.length > 0 ? joined([this.#waiting, bytes]) : bytes;
    this.#flush();
  }

  /** A message came; frames may begin and end anywhere. @param {Uint8Array<ArrayBuffer>} message */
  handle(message) {
    let rest = this.#part.length > 0 ? joined([this.#part, message]) : message;
    while (rest.length >= HEADER) {
      const view = new DataView(rest.buffer, rest.byteOffset, HEADER);
      const end = HEADER + view.getUint16(5, true);
      if (rest.length < end) break;
      this.#take(view.getUint8(0), rest.subarray(HEADER, end));
      rest = rest.subarray(end);
    }
    this.#part = rest;
  }

  /** @param {number} kind @param {Uint8Array<ArrayBuffer>} payload */
  #take(kind, payload) {
    if (kind === DATA) {
      this.#unreturned += payload.length;
      if (this.#unreturned >= WINDOW / 2) {
        this.send(frame(CREDIT, number(this.#unreturned)));
        this.#unreturned = 0;
      }
      this.received(payload.length);
    } else if (kind === CREDIT) {
      this.#credit += new DataView(payload.buffer, payload.byteOffset).getUint32(0, true);
      this.#flush();
    } else if (kind === CLOSE) {
      throw new Error(`the relay closed the channel: ${payload[0]} ${new TextDecoder().decode(payload.subarray(1))}`);
    } else if (kind !== OPENED) {
      throw new Error(`a frame of kind ${kind}`);
    }
  }

  #flush() {
    const frames = [];
    while (this.#waiting.length > 0 && this.#credit > 0) {
      const payload = this.#waiting.subarray(0, Math.min(DATA_MAX, this.#credit));
      this.#waiting = this.#waiting.subarray(payload.length);
      this.#credit -= payload.length;
      frames.push(frame(DATA, payload));
    }
    if (frames.length > 0) this.send(joined(frames));
  }
}

/** A frame of the only channel. @param {number} kind @param {Uint8Array} payload */
function frame(kind, payload) {
  const bytes = new Uint8Array(HEADER + payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, kind);
  view.setUint32(1, 1, true);
  view.setUint16(5, payload.length, true);
  bytes.set(payload, HEADER);
  return bytes;
}

/** @param {number} value */
function number(value) {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

/** @param {Uint8Array[]} parts */
function joined(parts) {
  if (parts.length === 1) return /** @type {Uint8Array<ArrayBuffer>} */ (parts[0]);
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
