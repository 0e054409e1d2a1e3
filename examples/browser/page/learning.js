// Tells when the driver has learned what changed: how long it took, and how many requests went astray meanwhile.

import { note } from "./log.js";

export class Learning {
  #table;
  #versions = [];
  #open = new Map();

  /** `held` is what the driver knows of each tablet; without it there is nothing to tell. */
  look(table, { nodes, tablets }, held) {
    const isSame = this.#table === table && this.#versions.length === tablets.length;
    const astray = astrayOf(nodes, table);
    tablets.forEach(({ version }, at) => {
      if (isSame && held && this.#versions[at] !== version && held[at]) {
        this.#open.set(at, { began: performance.now(), astray: this.#astray });
      }
    });
    if (!isSame) this.#open.clear();
    for (const [at, { began, astray: before }] of this.#open) {
      if (held?.[at]?.version !== tablets[at].version) continue;
      this.#open.delete(at);
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      const count = astray - before;
      const cost = count === 1 ? "1 request went" : `${count} requests went`;
      note(`The driver has learned tablet ${at} of ${table}: ${cost} astray in ${seconds} s`, "good");
    }
    this.#table = table;
    this.#astray = astray;
    this.#versions = tablets.map(({ version }) => version);
  }

  #astray = 0;
}

function astrayOf(nodes, table) {
  const counted = nodes.map((node) => node.tables[table]).filter(Boolean);
  return counted.reduce((sum, { requests, at_owner_shard }) => sum + requests - at_owner_shard, 0);
}
