// The chosen tablet: its replicas and its version, as the nodes have them and as the driver does.

import { byId, chip, element } from "./element.js";

/** Shows a tablet; `actions` are `[label, act]`. Draws anew only what has changed. */
export class TabletDetail {
  #shown = "";

  show(table, at, tablet, held, knows, actions) {
    const key = JSON.stringify([table, at, tablet, Boolean(held), knows, actions.map(([label]) => label)]);
    if (key === this.#shown) return;
    const [root, focused] = [byId("tablet"), document.activeElement?.dataset?.action];
    this.#shown = key;
    const buttons = actions.map(([label, act]) => element("button", { type: "button", "data-action": label, onclick: act }, label));
    root.replaceChildren(
      element("h3", {}, `Tablet ${at}`),
      element("p", { class: "range" }, `(${tablet.first}, ${tablet.last}]`),
      element("dl", {},
        row("Nodes", leaderFirst(tablet).map(({ node, shard }, copy) => chip(node, shard, tablet.leader !== null && copy === 0))),
        held && row("Driver", knows ? replicasOf(knows, tablet) : [element("small", {}, "not met yet")]),
        row("Version", [nibbles(tablet.version)]),
        held && row("Driver’s", knows ? [nibbles(knows.version, tablet.version), verdict(knows, tablet)] : [element("small", {}, "none")])),
      element("div", { class: "actions" }, buttons),
    );
    buttons.find((button) => button.dataset.action === focused)?.focus();
  }
}

const row = (name, held) => [element("dt", {}, name), element("dd", {}, held)];

/** As the driver holds them. */
const leaderFirst = ({ replicas, leader }) =>
  leader === null ? replicas : [replicas[leader], ...replicas.filter((_, copy) => copy !== leader)];

const replicasOf = (knows, tablet) =>
  knows.replicas.map(({ node, shard }, copy) => chip(node, shard, tablet.leader !== null && copy === 0));

/** The sixteen slices of a version. The driver shows one with each request, so a change is soon met. */
function nibbles(version, other) {
  if (!version) return element("small", {}, "none");
  const shown = element("span", { class: "nibbles", role: "img", "aria-label": version });
  shown.append(...Array.from(version, (digit, at) =>
    element("span", { class: other && other[at] !== digit ? "differs" : undefined }, digit)));
  return shown;
}

function verdict(knows, tablet) {
  return knows.version === tablet.version
    ? element("span", { class: "verdict same" }, "the same")
    : element("span", { class: "verdict differs" }, "out of date");
}
