// One driver under load, in a process of its own: told what to do by `run.mjs`, message by message.

import { works } from "./workload.mjs";

const { driver: name, contact, routing } = JSON.parse(process.argv[2]);
const driver = await (await import(`./drivers/${name}.mjs`)).open({ contact, routing });

/** Keeps `inFlight` requests under way for some time. @param {{ work: string, inFlight: number, seconds: number }} order */
async function measure({ work, inFlight, seconds }) {
  const make = works[work];
  let [count, isOver] = [0, false];
  const lane = async () => {
    while (!isOver) await make(driver, count++);
  };
  const [cpu, start] = [process.cpuUsage(), performance.now()];
  setTimeout(() => { isOver = true; }, seconds * 1000);
  await Promise.all(Array.from({ length: inFlight }, lane));
  const took = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { count, seconds: took, cpu: (user + system) / 1e6 };
}

/** What is held when nothing is under way. */
function memory() {
  const collect = /** @type {() => void} */ (globalThis.gc);
  collect();
  collect();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heap: heapUsed, external, rss };
}

process.on("message", async (/** @type {any} */ order) => {
  const measured = await measure(order);
  process.send?.({ ...measured, ...(order.memory && memory()) });
});
process.on("disconnect", async () => {
  await driver.close();
  process.exit(0);
});
process.send?.({ version: driver.version });
