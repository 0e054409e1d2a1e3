// Rows as a table, each value as its type wants to be read.

import { byId, element } from "./element.js";

const FIGURES = new Set(["tinyint", "smallint", "int", "bigint", "varint", "counter", "float", "double", "decimal"]);
const CODES = new Set(["uuid", "timeuuid", "blob", "inet"]);

/** Shows a page of rows, below those that stand there if `isMore`. */
export function showRows({ columns, rows }, isMore) {
  const root = byId("rows");
  let body = root.querySelector("tbody");
  if (!isMore || !body) {
    if (columns.length === 0) return root.replaceChildren();
    const heads = columns.map(({ name, type }) => element("th", { scope: "col" }, name, element("small", {}, type)));
    body = element("tbody");
    root.replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, heads)), body));
    root.scrollTop = 0;
  }
  body.append(...rows.map((row) => element("tr", {}, row.map((value, at) => cell(value, columns[at].type)))));
}

function cell(value, type) {
  if (value === null || value === undefined) return element("td", { class: "nothing" }, "null");
  const plain = type.replace(/^frozen<(.*)>$/, "$1");
  const kind = FIGURES.has(plain) ? "figure-cell" : CODES.has(plain) ? "code" : "";
  const text = readable(value);
  return element("td", { class: kind, title: text.length > 30 ? text : undefined }, text);
}

/** A value as CQL would write it, more or less. */
export function readable(value) {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return value;
  if (value instanceof Date) return value.toISOString().replace("T", " ").replace(/\.000Z$/, "Z");
  if (value instanceof Uint8Array) return `0x${Array.from(value, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  if (value instanceof Set) return `{${Array.from(value, inside).join(", ")}}`;
  if (value instanceof Map) return `{${Array.from(value, ([key, held]) => `${inside(key)}: ${inside(held)}`).join(", ")}}`;
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return `[${Array.from(value, inside).join(", ")}]`;
  if (typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype) {
    return `{${Object.entries(value).map(([name, held]) => `${name}: ${inside(held)}`).join(", ")}}`;
  }
  return String(value);
}

const inside = (value) => (typeof value === "string" ? `'${value}'` : readable(value));
