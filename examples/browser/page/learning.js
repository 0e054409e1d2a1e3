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
    const learned = [...this.#open].filter(([at]) => held?.[at]?.version === tablets[at].version);
    if (learned.length > 0) note(sentence(table, learned, astray), "good");
    for (const [at] of learned) this.#open.delete(at);
    this.#table = table;
    this.#astray = astray;
    this.#versions = tablets.map(({ version }) => version);
  }

  #astray = 0;
}

/** One line for all that were learned since the last look. */
function sentence(table, learned, astray) {
  const began = Math.min(...learned.map(([, { began }]) => began));
  const count = astray - Math.min(...learned.map(([, { astray }]) => astray));
  const seconds = (performance.now() - began) / 1000;
  const time = seconds < 0.1 ? "less than 0.1 s" : `${seconds.toFixed(1)} s`;
  const which = learned.length === 1 ? `tablet ${learned[0][0]}` : `tablets ${learned.map(([at]) => at).join(", ")}`;
  const cost = count === 1 ? "1 request went" : `${count} requests went`;
  return `The driver has learned ${which} of ${table}: ${cost} astray in ${time}`;
}

function astrayOf(nodes, table) {
  const counted = nodes.map((node) => node.tables[table]).filter(Boolean);
  return counted.reduce((sum, { requests, at_owner_shard }) => sum + requests - at_owner_shard, 0);
}
