// The figures at the top: what the page measured, and what the nodes counted.

import { byId, element, milliseconds, percent, say } from "./element.js";
import { Spark } from "./spark.js";

export class Figures {
  #sparks = {
    rate: new Spark(byId("rate-spark")),
    latency: new Spark(byId("latency-spark"), { lines: 2 }),
    right: new Spark(byId("right-spark"), { top: 1 }),
    leader: new Spark(byId("leader-spark"), { top: 1 }),
  };
  #times = [];
  #recent = [];
  #windows = [];

  /** One request took so long. */
  took(time) {
    this.#times.push(time);
  }

  /** The share of requests that reached the shard the driver meant, by its own count. */
  #says(cluster) {
    if (!cluster) return [];
    const { reached, missed } = cluster;
    return [element("small", { class: "aside" }, `${percent(reached, reached + missed)} as the driver meant`)];
  }

  /** Shows the last half second; `total` are the nodes' counters, `cluster` is what the driver says. */
  show(total, cluster) {
    const now = performance.now();
    const before = this.#windows.at(-1);
    this.#windows.push({ now, ...total });
    if (this.#windows.length > 11) this.#windows.shift();
    const times = this.#times.sort((a, b) => a - b);
    this.#times = [];
    this.#recent = [...this.#recent, ...times].slice(-4000);
    if (!before || before.requests > total.requests) return void this.#windows.splice(0, this.#windows.length - 1);

    const since = (name) => total[name] - before[name];
    const oldest = this.#windows[0];
    const lately = (name) => total[name] - oldest[name];
    const seconds = Math.max((now - oldest.now) / 1000, 0.1);
    byId("rate").replaceChildren(String(Math.round(lately("requests") / seconds)), element("small", {}, "/s"));
    this.#sparks.rate.push(since("requests") / Math.max((now - before.now) / 1000, 0.05));
    const [p50, p99] = [at(times, 0.5), at(times, 0.99)];
    if (p50 !== undefined) {
      const of = [...this.#recent].sort((a, b) => a - b);
      byId("latency").replaceChildren(milliseconds(at(of, 0.5)), element("small", {}, "ms"), element("small", { class: "aside" }, `${milliseconds(at(of, 0.99))} ms`));
      this.#recent = this.#recent.slice(-500);
    }
    this.#sparks.latency.push(p50, p99);
    const right = percent(lately("at_owner_shard"), lately("requests"));
    byId("right").replaceChildren(right, ...this.#says(cluster));
    this.#sparks.right.push(share(since("at_owner_shard"), since("requests")));
    say(byId("leader"), percent(lately("at_leader"), lately("needing_leader")));
    this.#sparks.leader.push(share(since("at_leader"), since("needing_leader")));
  }
}

const share = (part, whole) => (whole > 0 ? part / whole : null);
const at = (sorted, part) => sorted[Math.min(Math.floor(sorted.length * part), sorted.length - 1)];
