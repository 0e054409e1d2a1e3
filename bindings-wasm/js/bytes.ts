// Bytes that grow, and bytes that are read.

const encoder = new TextEncoder();

/** Gives room for so many bytes, in which what was written stays. */
export type Room = (size: number) => Uint8Array;

const NOTHING = new Uint8Array(0);

/** Texts up to this length are written without the encoder, whose call costs more than they do. */
const SHORT_MAX = 48;

/** Bytes that grow, in memory of their own or in a room. Numbers are big-endian, as CQL has them. */
export class Writer {
  readonly #room: Room | undefined;
  #bytes: Uint8Array = NOTHING;
  #view = new DataView(NOTHING.buffer);
  length = 0;
  /** How often it was begun. */
  turn = 0;

  constructor(room?: Room) {
    this.#room = room;
  }

  /** Forgets what was written. */
  begin(): number {
    if (this.length > KEPT_MAX) this.#bytes = NOTHING;
    this.length = 0;
    return ++this.turn;
  }

  /** Where `size` bytes more begin; may replace the buffer. A room that has moved has no bytes here any more. */
  #take(size: number): number {
    const at = this.length;
    if (at + size > this.#bytes.length) this.#grow(at + size);
    this.length = at + size;
    return at;
  }

  #grow(needed: number): void {
    const size = Math.max(this.#bytes.length * 2, needed, LEAST);
    if (this.#room) {
      this.#bytes = this.#room(size);
    } else {
      const grown = new Uint8Array(size);
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    this.#view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength);
  }

  int8(value: number): void {
    const at = this.#take(1);
    this.#view.setInt8(at, value);
  }

  int16(value: number): void {
    const at = this.#take(2);
    this.#view.setInt16(at, value);
  }

  int32(value: number, littleEndian = false): void {
    const at = this.#take(4);
    this.#view.setInt32(at, value, littleEndian);
  }

  int64(value: bigint, littleEndian = false): void {
    const at = this.#take(8);
    this.#view.setBigInt64(at, value, littleEndian);
  }

  float32(value: number): void {
    const at = this.#take(4);
    this.#view.setFloat32(at, value);
  }

  float64(value: number): void {
    const at = this.#take(8);
    this.#view.setFloat64(at, value);
  }

  bytes(bytes: Uint8Array): void {
    const at = this.#take(bytes.length);
    this.#bytes.set(bytes, at);
  }

  text(text: string): void {
    const at = this.#take(text.length * 3);
    const bytes = this.#bytes;
    if (text.length <= SHORT_MAX) {
      let index = 0;
      for (; index < text.length; index++) {
        const unit = text.charCodeAt(index);
        if (unit > 127) break;
        bytes[at + index] = unit;
      }
      if (index === text.length) {
        this.length = at + index;
        return;
      }
    }
    this.length = at + encoder.encodeInto(text, bytes.subarray(at)).written;
  }

  /** A text or bytes behind their little-endian length, as the module reads settings; tells that length. */
  field(field: string | Uint8Array): number {
    const start = this.length;
    this.int32(0);
    if (typeof field === "string") this.text(field);
    else this.bytes(field);
    const length = this.length - start - 4;
    this.#view.setInt32(start, length, true);
    return length;
  }

  /** The same, with zeros up to the next word. */
  padded(field: string | Uint8Array): void {
    for (let length = this.field(field); length & 3; length++) this.int8(0);
  }

  /** Sets the length in front of what was written since `start`. */
  endValue(start: number): void {
    this.#view.setInt32(start, this.length - start - 4);
  }

  /** Sets a big-endian number that was left open. */
  setInt32(at: number, value: number): void {
    this.#view.setInt32(at, value);
  }

  /** Another one. */
  fresh(): Writer {
    return new Writer();
  }

  get written(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }
}

/** Bytes that a writer takes at first. */
const LEAST = 256;

/** With more than this written, the module gives the room up when it has read it. */
const KEPT_MAX = 64 << 10;

/** Bytes with a view on them: the cells of a page. */
export class Cells {
  declare readonly view: DataView;

  constructor(readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
}
