// The client of relay.mjs, the same in every host: round trips of one size after the other over WebSockets, by turns.
//
// Where the host's clock has coarse steps, as many round trips are taken together as make the step nothing beside
// them: then a sample is their mean.

import { Channel } from "./channel.mjs";

/**
 * @typedef {object} RoundTrips
 * @property {{ url: string, protocols: string[], target?: string }[]} ways with a target: by a channel to it
 * @property {number[]} sizes in bytes
 * @property {number} turns of each way, for each size
 * @property {number} count of round trips in a turn, if they do not take longer than a second
 * @property {number} clockStep milliseconds between two different readings of the clock; 0 for a fine one
 */

/** An OPTIONS request: what a client may begin with. */
const OPTIONS = Uint8Array.of(4, 0, 0, 1, 5, 0, 0, 0, 0);

/** How far the clock's steps may put a round trip wrong, in milliseconds. */
const ERROR_MAX = 0.002;

/** Longest turn, in milliseconds; one round trip at least is taken. */
const TURN_MAX = 1000;

/** @param {RoundTrips["ways"][0]} way */
async function open({ url, protocols, target }) {
  const socket = new WebSocket(url, protocols);
  socket.binaryType = "arraybuffer";
  let missing = 0;
  let whole = () => {};
  /** @type {(error: Error) => void} */
  let failed = () => {};
  const received = (/** @type {number} */ count) => {
    missing -= count;
    if (missing === 0) whole();
  };
  const channel = target === undefined ? undefined : new Channel((message) => socket.send(message), received);
  socket.onmessage = ({ data }) => {
    try {
      if (channel) channel.handle(new Uint8Array(data));
      else received(data.byteLength);
    } catch (error) {
      failed(/** @type {Error} */ (error));
    }
  };
  socket.onclose = ({ code, reason }) => failed(new Error(`${url} closed: ${code} ${reason}`));
  await new Promise((done, refused) => {
    socket.onopen = done;
    failed = refused;
  });
  if (target !== undefined) channel?.open(target);
  const roundTrip = (/** @type {Uint8Array<ArrayBuffer>} */ bytes) =>
    new Promise((done, lost) => {
      missing = bytes.length;
      whole = () => done(undefined);
      failed = lost;
      if (channel) channel.write(bytes);
      else socket.send(bytes);
    });
  await roundTrip(OPTIONS);
  return { roundTrip, close: () => socket.close() };
}

const median = (/** @type {number[]} */ numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1] ?? NaN;

/**
 * Tells the medians of each way's turns, in milliseconds.
 *
 * @param {RoundTrips} wanted
 * @param {(result: { size: number, medians: number[][] }) => void} tell
 */
export async function roundTrips({ ways, sizes, turns, count, clockStep }, tell) {
  const together = Math.max(1, Math.ceil(clockStep / ERROR_MAX));
  const opened = await Promise.all(ways.map(open));
  for (const size of sizes) {
    const bytes = new Uint8Array(size).fill(7);
    const medians = opened.map(() => /** @type {number[]} */ ([]));
    for (let turn = 0; turn < turns; turn++) {
      for (const [at, way] of opened.entries()) {
        const took = [];
        const end = performance.now() + TURN_MAX;
        for (let done = 0; done < count && performance.now() < end; done += together) {
          const start = performance.now();
          for (let n = 0; n < together; n++) await way.roundTrip(bytes);
          took.push((performance.now() - start) / together);
        }
        medians[at]?.push(median(took));
      }
    }
    tell({ size, medians });
  }
  for (const way of opened) way.close();
}
