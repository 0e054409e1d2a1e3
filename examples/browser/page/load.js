// Steady load: reads and writes of random keys, at a rate that the slider sets.

import { byId } from "./element.js";

const RATES = [0, 10, 30, 60, 120, 250, 500, 1000, 2000];

/** More requests than this at a time would only wait for each other. */
const IN_FLIGHT_MAX = 256;

/** What the load runs; of ten requests three write. */
const WORK = {
  "shop.products": {
    read: ["SELECT name, price, stock FROM shop.products WHERE id = ?", (key) => [key]],
    write: ["UPDATE shop.products SET stock = ? WHERE id = ?", (key) => [Math.floor(Math.random() * 120), key]],
    consistency: "LOCAL_ONE",
  },
  "shop.orders": {
    read: ["SELECT number, total, paid FROM shop.orders WHERE customer = ?", (key) => [key]],
    write: ["UPDATE shop.orders SET paid = ? WHERE customer = ? AND number = 1", (key) => [Math.random() < 0.5, key]],
    consistency: "LOCAL_ONE",
  },
  "bank.accounts": {
    read: ["SELECT owner, balance FROM bank.accounts WHERE id = ?", (key) => [key]],
    write: ["UPDATE bank.accounts SET balance = ? WHERE id = ?", (key) => [BigInt(Math.floor(Math.random() * 750_000)), key]],
    consistency: "LOCAL_QUORUM",
  },
};

export const TABLES = Object.keys(WORK);

export class Load {
  #driver;
  #keys;
  #owed = 0;
  #inFlight = 0;
  #before = performance.now();

  /** `ondone(place, table)` and `onfailed(error, table)` are called for each request. */
  constructor(driver, keys, ondone, onfailed) {
    this.#driver = driver;
    this.#keys = keys;
    this.ondone = ondone;
    this.onfailed = onfailed;
    const slider = byId("load");
    slider.addEventListener("input", () => this.#rate(slider));
    this.#rate(slider);
    setInterval(() => this.#tick(), 25);
  }

  #rate(slider) {
    this.rate = RATES[slider.value];
    const text = this.rate === 0 ? "off" : `${this.rate}/s`;
    byId("load-text").textContent = text;
    slider.setAttribute("aria-valuetext", this.rate === 0 ? "off" : `${this.rate} requests a second`);
  }

  #tick() {
    const now = performance.now();
    // A page that slept does not catch up.
    this.#owed += Math.min(now - this.#before, 100) * this.rate / 1000;
    this.#before = now;
    for (; this.#owed >= 1; this.#owed--) {
      if (this.#inFlight < IN_FLIGHT_MAX) this.#one();
    }
  }

  async #one() {
    const table = TABLES[Math.floor(Math.random() * TABLES.length)];
    const { read, write, consistency } = WORK[table];
    const [text, values] = Math.random() < 0.3 ? write : read;
    this.#inFlight++;
    try {
      const key = Math.floor(Math.random() * this.#keys);
      this.ondone(await this.#driver.execute(text, values(key), { consistency, idempotent: true }), table);
    } catch (error) {
      this.onfailed(error, table);
    } finally {
      this.#inFlight--;
    }
  }
}
