// Puts functions that are alike next to each other, so that gzip finds in its window what they share.
//
// The functions called most keep the first places, where a call is two bytes; the others follow each
// other by how much they share with those just before. Takes and gives a module as bytes; only its
// name section is new, for `wasm-opt --reorder-functions-by-name`, which does the moving.

/** Function indices below this take one byte. */
const SHORT_MAX = 128;

/** How much of what came before a function is compared with: a part of gzip's window. */
const WINDOW = 12_000;

/** What more functions than this have tells nothing. */
const HOLDERS_MAX = 100;

/** The length of what two functions are to share, at least. */
const GRAM = 6;

/**
 * The module with names of its functions that sort as they are to stand.
 * @param {Uint8Array} module with no imported functions, most called functions first
 */
export function named(module) {
  const bodies = readBodies(module);
  const order = arrange(bodies);
  const names = order.map((index, place) => ({ index, name: `f${String(place).padStart(6, "0")}` }));
  names.sort((a, b) => a.index - b.index);
  const map = [...leb(names.length), ...names.flatMap(({ index, name }) => [...leb(index), ...text(name)])];
  const section = [...text("name"), 1, ...leb(map.length), ...map];
  return Buffer.concat([module, Buffer.from([0, ...leb(section.length), ...section])]);
}

/** @param {Uint8Array[]} bodies @returns {number[]} */
function arrange(bodies) {
  const grams = bodies.map(gramsOf);
  /** Which functions have a gram. @type {Map<number, number[]>} */
  const holders = new Map();
  grams.forEach((found, index) => {
    for (const gram of found) {
      const held = holders.get(gram);
      if (held) held.push(index);
      else holders.set(gram, [index]);
    }
  });
  /** How many grams of the window each function has. */
  const shared = new Uint32Array(bodies.length);
  /** How many functions of the window have a gram. @type {Map<number, number>} */
  const seen = new Map();
  const pass = (/** @type {number} */ index, /** @type {1 | -1} */ step) => {
    for (const gram of /** @type {Set<number>} */ (grams[index])) {
      const held = /** @type {number[]} */ (holders.get(gram));
      if (held.length > HOLDERS_MAX) continue;
      const before = seen.get(gram) ?? 0;
      seen.set(gram, before + step);
      if (before === 0 || before + step === 0) for (const holder of held) shared[holder] += step;
    }
  };
  /** @type {number[]} */
  const order = [];
  const left = new Set(bodies.keys());
  let [size, start] = [0, 0];
  while (left.size > 0) {
    const next = order.length < SHORT_MAX ? order.length : likest(shared, bodies, left);
    order.push(next);
    left.delete(next);
    pass(next, 1);
    size += lengthOf(bodies, next);
    for (; size > WINDOW && start + 1 < order.length; start++) {
      const gone = /** @type {number} */ (order[start]);
      pass(gone, -1);
      size -= lengthOf(bodies, gone);
    }
  }
  return order;
}

/** @param {Uint8Array} body */
function gramsOf(body) {
  const found = new Set();
  for (let at = 0; at + GRAM <= body.length; at++) {
    let gram = 0;
    for (let place = at; place < at + GRAM; place++) gram = gram * 256 + /** @type {number} */ (body[place]);
    found.add(gram);
  }
  return found;
}

/**
 * Of those left, the one that shares most of itself with the window.
 * @param {Uint32Array} shared @param {Uint8Array[]} bodies @param {Set<number>} left
 */
function likest(shared, bodies, left) {
  let [best, most] = [/** @type {number} */ (left.values().next().value), 0];
  for (const index of left) {
    const share = /** @type {number} */ (shared[index]) / (lengthOf(bodies, index) + 20);
    if (share > most) [best, most] = [index, share];
  }
  return best;
}

const lengthOf = (/** @type {Uint8Array[]} */ bodies, /** @type {number} */ index) =>
  /** @type {Uint8Array} */ (bodies[index]).length;

/** @param {Uint8Array} module @returns {Uint8Array[]} */
function readBodies(module) {
  let at = 8;
  const number = () => {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = /** @type {number} */ (module[at++]);
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  while (at < module.length) {
    const id = module[at++];
    const length = number();
    if (id === 10) {
      return Array.from({ length: number() }, () => {
        const size = number();
        at += size;
        return module.subarray(at - size, at);
      });
    }
    at += length;
  }
  throw new Error("a module without code");
}

/** @param {number} value */
function leb(value) {
  const bytes = [];
  for (; value > 127; value >>>= 7) bytes.push((value & 127) | 128);
  return [...bytes, value];
}

/** @param {string} value */
const text = (value) => [...leb(value.length), ...Buffer.from(value)];
