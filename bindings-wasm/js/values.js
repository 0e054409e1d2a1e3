// CQL values to bytes and back, by the names of their types.
//
// A codec writes a value behind its length, or makes one of `length` bytes at `at`. What a codec
// cannot take it refuses; nothing is rounded or cut.

import { CqlError } from "./error.js";

/**
 * @typedef {object} Codec
 * @property {number} [size] bytes of every value, where that is fixed
 * @property {(writer: Writer, value: any) => boolean | void} put false if the value does not fit
 * @property {(view: DataView, at: number, length: number) => unknown} get
 */

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** Bytes that grow. */
export class Writer {
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  length = 0;

  /** Where `size` bytes more begin; may replace the buffer. @param {number} size */
  #room(size) {
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

  /** @param {number} value @param {boolean} [littleEndian] */
  int32(value, littleEndian) {
    const at = this.#room(4);
    this.#view.setInt32(at, value, littleEndian);
  }

  /** @param {bigint} value */
  long(value) {
    const at = this.#room(8);
    this.#view.setBigInt64(at, value, true);
  }

  /** @param {Uint8Array} bytes */
  bytes(bytes) {
    const at = this.#room(bytes.length);
    this.#bytes.set(bytes, at);
  }

  /**
   * A fixed-size number.
   * @param {"setInt8" | "setInt16" | "setInt32" | "setFloat32" | "setFloat64" | "setBigInt64"} method
   * @param {number} size
   * @param {any} value
   */
  number(method, size, value) {
    const at = this.#room(size);
    this.#view[method](at, /** @type {never} */ (value));
  }

  /** Sets the big-endian length in front of what was written since. @param {number} start */
  endValue(start) {
    this.#view.setInt32(start, this.length - start - 4);
  }

  get written() {
    return this.#bytes.subarray(0, this.length);
  }
}

/** @param {8 | 16 | 32} bits @returns {Codec} */
const integer = (bits) => ({
  size: bits / 8,
  put(writer, value) {
    if (!Number.isInteger(value) || value < -(2 ** (bits - 1)) || value >= 2 ** (bits - 1)) return false;
    writer.number(`setInt${bits}`, bits / 8, value);
  },
  get: (view, at) => view[`getInt${bits}`](at),
});

/** @param {32 | 64} bits @returns {Codec} */
const floating = (bits) => ({
  size: bits / 8,
  put(writer, value) {
    if (typeof value !== "number") return false;
    writer.number(`setFloat${bits}`, bits / 8, value);
  },
  get: (view, at) => view[`getFloat${bits}`](at),
});

/** @type {Codec} */
const bigint = {
  size: 8,
  put(writer, value) {
    if (Number.isSafeInteger(value)) value = BigInt(value);
    if (typeof value !== "bigint" || BigInt.asIntN(64, value) !== value) return false;
    writer.number("setBigInt64", 8, value);
  },
  get: (view, at) => view.getBigInt64(at),
};

/** @type {Codec} */
const text = {
  put(writer, value) {
    if (typeof value !== "string") return false;
    writer.bytes(encoder.encode(value));
  },
  get: (view, at, length) => decoder.decode(bytesOf(view, at, length)),
};

/** @type {Codec} */
const blob = {
  put(writer, value) {
    if (value instanceof ArrayBuffer) value = new Uint8Array(value);
    if (!ArrayBuffer.isView(value)) return false;
    writer.bytes(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  },
  get: (view, at, length) => bytesOf(view, at, length).slice(),
};

/** @type {Codec} */
const uuid = {
  size: 16,
  put(writer, value) {
    if (!/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(value)) return false;
    const digits = value.replaceAll("-", "");
    writer.bytes(Uint8Array.from({ length: 16 }, (_, i) => parseInt(digits.substr(i * 2, 2), 16)));
  },
  get(view, at) {
    const digits = Array.from(bytesOf(view, at, 16), (byte) => byte.toString(16).padStart(2, "0")).join("");
    return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  },
};

/** @type {Codec} */
const boolean = {
  size: 1,
  put(writer, value) {
    if (typeof value !== "boolean") return false;
    writer.number("setInt8", 1, value ? 1 : 0);
  },
  get: (view, at) => view.getInt8(at) !== 0,
};

/** @type {Codec} */
const timestamp = {
  size: 8,
  put: (writer, value) => value instanceof Date && bigint.put(writer, value.getTime()),
  get: (view, at) => new Date(Number(view.getBigInt64(at))),
};

/** @type {Record<string, Codec>} */
const codecs = {
  ascii: text, bigint, blob, boolean, counter: bigint, double: floating(64), float: floating(32),
  int: integer(32), smallint: integer(16), text, timestamp, timeuuid: uuid, tinyint: integer(8), uuid,
};

/** @param {DataView} view @param {number} at @param {number} length */
function bytesOf(view, at, length) {
  return new Uint8Array(view.buffer, view.byteOffset + at, length);
}

/** @param {import("./index.d.ts").Column} column */
function codecOf({ name, type }) {
  if (Object.hasOwn(codecs, type)) return codecs[type];
  throw new CqlError("usage", `${name}: values of type ${type} are not supported yet`);
}

/**
 * Writes a value for each marker: null as null, undefined as unset.
 *
 * @param {Writer} writer
 * @param {readonly import("./index.d.ts").Column[]} markers
 * @param {readonly unknown[]} values
 */
export function putValues(writer, markers, values) {
  if (values.length !== markers.length) {
    throw new CqlError("encode", `${values.length} values for ${markers.length} markers`);
  }
  markers.forEach((marker, index) => {
    const value = values[index];
    const start = writer.length;
    writer.int32(value === undefined ? -2 : -1);
    if (value === undefined || value === null) return;
    if (codecOf(marker).put(writer, value) === false) {
      throw new CqlError("encode", `value ${index} (${marker.name}): ${typeof value} does not fit ${marker.type}`);
    }
    writer.endValue(start);
  });
}

/**
 * Makes the value of a cell that begins, with its length, at `at`.
 *
 * @param {DataView} view
 * @param {number} at
 * @param {import("./index.d.ts").Column} column
 */
export function valueAt(view, at, column) {
  const length = view.getInt32(at);
  if (length < 0) return null;
  const codec = codecOf(column);
  if (codec.size !== undefined && codec.size !== length) {
    throw new CqlError("protocol", `${column.name}: ${length} bytes are no ${column.type}`);
  }
  return codec.get(view, at + 4, length);
}
