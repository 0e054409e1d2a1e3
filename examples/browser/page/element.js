// Making elements, without a framework.

/** An element with attributes, listeners (`onclick`) and children. */
export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function drawn(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return made;
}

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** Sets a text, unless it stands there already: screen readers speak of changes only. */
export function say(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

/** The colour of a node, as a CSS value. */
export const colourOf = (node) => `var(--node-${node % 9})`;

/** A chip that names a replica, or a whole node. */
export function chip(node, shard, isLeader) {
  const place = shard === undefined ? `node ${node + 1}` : `n${node + 1} · shard ${shard}`;
  const made = element("span", { class: isLeader ? "chip leader" : "chip" }, isLeader ? `★ ${place}` : place);
  if (isLeader) made.append(element("span", { class: "visually-hidden" }, " leads"));
  made.style.setProperty("--node", colourOf(node));
  return made;
}

/** Such as 12.3k. */
export function short(count) {
  if (count < 10_000) return String(count);
  if (count < 1_000_000) return `${(count / 1000).toFixed(count < 100_000 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

/** Such as 99.1 %; never rounded up to all. */
export function percent(part, whole) {
  if (whole === 0) return "–";
  const share = Math.floor((part / whole) * 1000) / 10;
  return `${part === whole ? "100" : share.toFixed(1)} %`;
}

/** Milliseconds with two figures that matter. */
export const milliseconds = (time) => (time < 10 ? time.toFixed(2) : time < 100 ? time.toFixed(1) : time.toFixed(0));
