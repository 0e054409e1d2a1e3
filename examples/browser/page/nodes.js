// The panel of nodes: a card each, and in it a cell for each shard that lights up when a request reaches it.

import { byId, colourOf, element, say, short } from "./element.js";

const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Nodes {
  #cards;

  /** `onpower(node, alive)` is called when a node shall stop or start. */
  constructor(nodes, onpower) {
    this.#cards = nodes.map((node, at) => new Card(node, at, onpower));
    byId("nodes").replaceChildren(...this.#cards.map((card) => card.root));
  }

  /** Shows what the nodes counted, and what the driver did: requests by shard, or nothing yet. */
  show(nodes, said) {
    nodes.forEach((node, at) => this.#cards[at]?.show(node, said[at]));
  }
}

class Card {
  #power;
  #cells;
  #alive = true;

  constructor(node, at, onpower) {
    const title = element("h3", {}, `node ${at + 1}`);
    const place = element("p", {}, `${node.contact.split(":")[0]} · ${node.rack}`);
    this.#power = element("button", { type: "button", onclick: () => onpower(at, this.#alive) }, "Kill");
    this.#power.setAttribute("aria-label", `Kill node ${at + 1}`);
    this.#cells = Array.from({ length: node.shards }, (_, shard) => new Cell(shard));
    const shards = element("div", { class: "shards" }, this.#cells.map((cell) => cell.root));
    this.root = element("article", { class: "node", "aria-label": `node ${at + 1}` },
      element("header", {}, element("div", {}, title, place), this.#power), shards);
    this.root.style.setProperty("--node", colourOf(at));
    this.at = at;
  }

  show(node, said) {
    if (this.#alive !== node.alive) {
      this.#alive = node.alive;
      this.root.classList.toggle("down", !node.alive);
      this.#power.textContent = node.alive ? "Kill" : "Start";
      this.#power.setAttribute("aria-label", `${node.alive ? "Kill" : "Start"} node ${this.at + 1}`);
    }
    node.shards.forEach((shard, at) => this.#cells[at].show(shard, said?.[at]));
  }
}

class Cell {
  #before;

  constructor(shard) {
    this.shard = shard;
    this.links = element("span", { class: "links" });
    this.total = element("span");
    this.astray = element("small", { class: "astray" });
    this.right = element("i");
    this.wrong = element("i", { class: "wrong" });
    this.glow = element("span", { class: "glow" });
    this.amiss = element("span", { class: "glow wrong" });
    this.root = element("div", { class: "shard", role: "group" }, this.glow, this.amiss,
      element("div", { class: "name" }, element("span", { class: "word" }, "shard"), `${shard}`, this.links),
      element("div", { class: "count" }, this.total, this.astray),
      element("div", { class: "bar", "aria-hidden": "true" }, this.right, this.wrong));
  }

  show(counted, said) {
    const wrong = counted.requests - counted.at_owner_shard;
    say(this.total, short(counted.requests));
    say(this.astray, wrong > 0 ? `${short(wrong)} ↷` : "");
    if (this.links.childElementCount !== counted.connections) {
      this.links.replaceChildren(...Array.from({ length: Math.min(counted.connections, 4) }, () => element("i")));
    }
    this.right.style.flexGrow = String(counted.at_owner_shard);
    this.wrong.style.flexGrow = String(wrong);
    const driver = said === undefined ? "" : `, the driver says ${said}`;
    const label = `shard ${this.shard}: ${counted.requests} requests${driver}; ${wrong} belonged elsewhere; `
      + `${counted.connections} connections`;
    this.root.setAttribute("aria-label", label);
    this.root.title = label;
    this.#pulse(counted, wrong);
  }

  #pulse(counted, wrong) {
    const before = this.#before;
    this.#before = { requests: counted.requests, wrong };
    if (!before || counted.requests < before.requests || calm.matches) return;
    const astray = wrong - before.wrong;
    flash(this.glow, counted.requests - before.requests - astray);
    flash(this.amiss, astray);
  }
}

/** Brighter for more, and never glaring. */
function flash(where, count) {
  if (count <= 0) return;
  const opacity = Math.min(0.14 + Math.log2(1 + count) * 0.06, 0.5);
  where.animate([{ opacity }, { opacity: 0 }], { duration: 700, easing: "ease-out" });
}
