// Bytes that grow, and bytes that are read.

const encoder = new TextEncoder();

/** Bytes that grow. Numbers are big-endian, as CQL has them. */
export class Writer {
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  length = 0;

  /** Where `size` bytes more begin; may replace the buffer. */
  #room(size: number): number {
    const at = this.length;
    if (at + size > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#bytes.length * 2, at + size));
      grown.set(this.#bytes);
      this.#bytes = grown;
      this.#view = new DataView(grown.buffer);
    }
    this.length = at + size;
    return at;
  }

  int8(value: number): void {
    const at = this.#room(1);
    this.#view.setInt8(at, value);
  }

  int16(value: number): void {
    const at = this.#room(2);
    this.#view.setInt16(at, value);
  }

  int32(value: number, littleEndian = false): void {
    const at = this.#room(4);
    this.#view.setInt32(at, value, littleEndian);
  }

  int64(value: bigint, littleEndian = false): void {
    const at = this.#room(8);
    this.#view.setBigInt64(at, value, littleEndian);
  }

  float32(value: number): void {
    const at = this.#room(4);
    this.#view.setFloat32(at, value);
  }

  float64(value: number): void {
    const at = this.#room(8);
    this.#view.setFloat64(at, value);
  }

  bytes(bytes: Uint8Array): void {
    const at = this.#room(bytes.length);
    this.#bytes.set(bytes, at);
  }

  text(text: string): void {
    const at = this.#room(text.length * 3);
    this.length = at + encoder.encodeInto(text, this.#bytes.subarray(at)).written;
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

/** Bytes with a view on them: the cells of a page. */
export class Cells {
  readonly view: DataView;

  constructor(readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
}
