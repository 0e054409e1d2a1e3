// The tablets of a table around the circle of tokens. Outside what the nodes say, inside what the driver has learned;
// a colour is that of the leader's node, or of the first node's where none leads.

import { byId, colourOf, drawn } from "./element.js";

const OUTER = [104, 140];
const INNER = [90, 100];

export class Ring {
  #root = byId("ring");
  #arcs = [];
  #known = [];
  #mark = drawn("path", { class: "chosen" });
  #big = drawn("text", { class: "big", y: 2 });
  #small = drawn("text", { y: 20 });
  #chosen = 0;

  /** `onchoose(at)` is called when a tablet is chosen. */
  constructor(onchoose) {
    this.onchoose = onchoose;
    this.#root.addEventListener("keydown", (event) => this.#step(event));
  }

  /** Shows tablets `{first, last, replicas, leader, version}` and what the driver holds of each. */
  show(tablets, held, chosen) {
    if (this.#arcs.length !== tablets.length) this.#draw(tablets);
    this.#chosen = chosen;
    tablets.forEach((tablet, at) => {
      const node = tablet.replicas[tablet.leader ?? 0]?.node;
      const knows = held?.[at];
      const arc = this.#arcs[at];
      paint(arc, tablet.leader === null && isStrong(tablets) ? undefined : node);
      paint(this.#known[at], knows?.replicas[0]?.node);
      arc.setAttribute("tabindex", at === chosen ? "0" : "-1");
      arc.setAttribute("aria-pressed", String(at === chosen));
      arc.setAttribute("aria-label", label(at, tablet, held, knows));
    });
    const count = held ? held.filter(Boolean).length : tablets.length;
    this.#big.textContent = held ? `${count}/${tablets.length}` : String(count);
    this.#small.textContent = held ? "tablets learned" : "tablets";
    const slot = span(tablets, chosen);
    this.#mark.setAttribute("d", arc(...slot, OUTER[0] - 2, OUTER[1] + 4));
  }

  #draw(tablets) {
    this.#arcs = tablets.map((_, at) => drawn("path", {
      class: "tablet-arc",
      role: "button",
      d: arc(...span(tablets, at), ...OUTER),
      onclick: () => this.onchoose(at),
    }));
    this.#known = tablets.map((_, at) => drawn("path", { class: "known-arc", d: arc(...span(tablets, at), ...INNER) }));
    const numbers = tablets.map((_, at) => {
      const [from, to] = span(tablets, at);
      const [x, y] = point((from + to) / 2, (OUTER[0] + OUTER[1]) / 2);
      return drawn("text", { class: "number", x, y: y + 3.5 }, String(at));
    });
    const shown = tablets.length > 40 ? [] : numbers;
    this.#root.replaceChildren(...this.#arcs, ...this.#known, ...shown, this.#mark, this.#big, this.#small);
  }

  #step(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const count = this.#arcs.length;
    if (event.key === "Enter" || event.key === " ") this.onchoose(this.#arcs.indexOf(document.activeElement));
    else if (step) this.onchoose((this.#chosen + step + count) % count);
    else return;
    event.preventDefault();
    this.#arcs[this.#chosen]?.focus();
  }
}

const isStrong = (tablets) => tablets.some((tablet) => tablet.leader !== null);

function paint(arc, node) {
  arc.classList.toggle("unknown", node === undefined);
  arc.style.fill = node === undefined ? "" : colourOf(node);
}

function label(at, tablet, held, knows) {
  const { node, shard } = tablet.replicas[tablet.leader ?? 0] ?? {};
  const role = tablet.leader === null ? "first replica" : "leader";
  const learned = !held ? "" : knows ? "; the driver has learned it" : "; the driver has not met it";
  return `Tablet ${at}: ${role} node ${node + 1} shard ${shard}${learned}`;
}

/** Angles of a tablet: tokens go once around, the smallest at the top. */
function span(tablets, at) {
  const turn = (token) => ((Number(token) / 2 ** 64 + 0.5) % 1) * 2 * Math.PI - Math.PI / 2;
  const { first, last } = tablets[Math.min(at, tablets.length - 1)];
  const [from, to] = [turn(first), turn(last)];
  return [from, to <= from ? to + 2 * Math.PI : to];
}

const point = (angle, radius) => [Math.cos(angle) * radius, Math.sin(angle) * radius];

function arc(from, to, inner, outer) {
  const end = Math.min(to, from + 2 * Math.PI - 1e-4);
  const large = end - from > Math.PI ? 1 : 0;
  const at = (angle, radius) => point(angle, radius).map((part) => part.toFixed(2)).join(",");
  return `M${at(from, outer)}A${outer},${outer} 0 ${large} 1 ${at(end, outer)}L${at(end, inner)}`
    + `A${inner},${inner} 0 ${large} 0 ${at(from, inner)}Z`;
}
