// The client of relay.mjs in one host: round trips of one size after the other over two WebSockets, by turns.
//
// Its argument is JSON: `ways`, two URLs with their sub-protocols, `sizes`, `turns`, `count` for each turn. Prints one
// JSON line for each size: the medians of each way's turns and the longest median, in milliseconds.

const argument = globalThis.Deno ? Deno.args[0] : process.argv[2];
const { ways, sizes, turns, count } = JSON.parse(argument);

/** An OPTIONS request: what a client may begin with. */
const OPTIONS = Uint8Array.of(4, 0, 0, 1, 5, 0, 0, 0, 0);

/** @param {{ url: string, protocols: string[] }} way */
async function open({ url, protocols }) {
  const socket = new WebSocket(url, protocols);
  socket.binaryType = "arraybuffer";
  await new Promise((done, failed) => {
    socket.onopen = done;
    socket.onerror = failed;
  });
  let missing = 0;
  let whole = () => {};
  socket.onmessage = ({ data }) => {
    missing -= data.byteLength;
    if (missing === 0) whole();
  };
  const roundTrip = (/** @type {Uint8Array} */ bytes) =>
    new Promise((done) => {
      missing = bytes.length;
      whole = () => done(undefined);
      socket.send(bytes);
    });
  await roundTrip(OPTIONS);
  return { roundTrip, close: () => socket.close() };
}

const median = (/** @type {number[]} */ numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];

const opened = await Promise.all(ways.map(open));
for (const size of sizes) {
  const bytes = new Uint8Array(size).fill(7);
  const medians = opened.map(() => /** @type {number[]} */ ([]));
  for (let turn = 0; turn < turns; turn++) {
    for (const [at, way] of opened.entries()) {
      const took = [];
      for (let n = 0; n < count; n++) {
        const start = performance.now();
        await way.roundTrip(bytes);
        took.push(performance.now() - start);
      }
      medians[at].push(median(took));
    }
  }
  console.log(JSON.stringify({ size, medians }));
}
for (const way of opened) way.close();
