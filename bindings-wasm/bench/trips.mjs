// Round trips from the open socket to the first row, with password login: `node bench/trips.mjs`.
//
// A trip is counted when bytes come after bytes were sent, on any link; the bars are 4 for a first
// connection and 2 for one that begins with what the first has learned.

import { connect as connectTcp } from "node:net";
import { connect } from "./package.mjs";
import { simulate } from "./processes.mjs";

const BARS = { cold: 4, warm: 2 };

/** Sockets that count. @param {{ trips: number }} counted @returns {import("messina-cql").Sockets} */
const counting = (counted) => (host, port, events) => {
  let isAsking = false;
  const socket = connectTcp({ host, port, noDelay: true });
  socket.on("connect", () => events.opened());
  socket.on("data", (bytes) => {
    if (isAsking) counted.trips++;
    isAsking = false;
    events.data(bytes);
  });
  socket.on("close", () => events.closed());
  socket.on("error", () => events.failed("other"));
  return {
    send(bytes, sent) {
      isAsking = true;
      socket.write(bytes, () => sent());
    },
    close: () => socket.destroySoon(),
    abort: () => void socket.destroy(),
  };
};

const login = { user: "reader", password: "bench only" };
const cluster = await simulate("--user", login.user, "--password", login.password);
try {
  /** @type {Uint8Array | undefined} */
  let warmStart;
  for (const [name, bar] of Object.entries(BARS)) {
    const counted = { trips: 0 };
    const db = await connect({
      contactPoints: cluster.contact, ...login, ...(warmStart && { warmStart }), sockets: counting(counted),
    });
    const row = (await db.execute("SELECT release_version FROM system.local")).first;
    const { trips } = counted;
    if (!row) throw new Error("no row");
    warmStart = db.warmStart();
    await db.close();
    console.log(`${name}: ${trips} round trips to the first row (at most ${bar})`);
    if (trips > bar) process.exitCode = 1;
  }
} finally {
  await cluster.stop();
}
