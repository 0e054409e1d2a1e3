// The query editor: a plain text area, and coloured text of the same shape behind it.

import { byId, element } from "./element.js";

const KEYWORDS = new Set((
  "ADD ALL ALLOW ALTER AND APPLY AS ASC BATCH BEGIN BY CLUSTERING COUNT CREATE CUSTOM DELETE DESC DESCRIBE DISTINCT "
  + "DROP EXISTS FILTERING FROM GROUP IF IN INDEX INSERT INTO JSON KEY KEYSPACE LIMIT MATERIALIZED NOT NULL ON OR "
  + "ORDER PARTITION PER PRIMARY SELECT SET STATIC TABLE TIMESTAMP TO TOKEN TRUE FALSE TRUNCATE TTL TYPE UNLOGGED "
  + "UPDATE USE USING VALUES VIEW WHERE WITH WRITETIME"
).split(" "));

/** Comments, strings, names in quotes, numbers, words and anything else, in this order. */
const TOKEN = /(--[^\n]*|\/\/[^\n]*|\/\*[^]*?(?:\*\/|$))|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(\b\d[\w.-]*)|([A-Za-z_]\w*)|(;)|([^])/g;

/** Colours the text as it is typed; Control and Enter submit the form. */
export function enliven(form) {
  const [text, colours] = [byId("text"), byId("colours")];
  const colour = () => colours.replaceChildren(...pieces(text.value), "\n");
  text.addEventListener("input", colour);
  text.addEventListener("scroll", () => { colours.scrollTop = text.scrollTop; });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  return (value) => { text.value = value; colour(); };
}

function* pieces(text) {
  for (const [all, comment, string, , number, word] of text.matchAll(TOKEN)) {
    const kind = comment ? "comment" : string ? "string" : number ? "number"
      : word && KEYWORDS.has(word.toUpperCase()) ? "keyword" : undefined;
    yield kind ? element("span", { class: kind }, all) : all;
  }
}

/** The statements of a text, which semicolons end; those in strings and comments do not. */
export function statements(text) {
  const found = [""];
  for (const [all, comment, , , , , end] of text.matchAll(TOKEN)) {
    if (end) found.push("");
    else found[found.length - 1] += comment ? " " : all;
  }
  return found.map((statement) => statement.trim()).filter((statement) => statement !== "");
}
