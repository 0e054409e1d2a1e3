// The list of what happened, newest first.

import { byId, element } from "./element.js";

const LINES = 60;

/** Adds a line; `kind` is `"good"`, `"bad"` or nothing. */
export function note(text, kind = "") {
  const list = byId("log");
  const time = new Date().toTimeString().slice(0, 8);
  list.prepend(element("li", {}, element("time", {}, time), element("span", { class: kind }, text)));
  while (list.childElementCount > LINES) list.lastElementChild.remove();
}
