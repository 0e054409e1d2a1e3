// The query panel: runs what the editor holds and shows where it went and what came back.

import { enliven, statements } from "./editor.js";
import { byId, chip, element, milliseconds } from "./element.js";
import { showRows } from "./rows.js";

const PAGE = 100;

const EXAMPLES = [
  ["A row by its key", "SELECT * FROM bank.accounts WHERE id = 42"],
  ["Orders of a customer", "SELECT number, product, total, paid, id\nFROM shop.orders WHERE customer = 17"],
  ["A page of a whole table", "SELECT id, name, price, stock, tags, added FROM shop.products"],
  ["Which token has a key", "SELECT id, token(id), owner FROM bank.accounts LIMIT 20"],
  ["Write, then read", "UPDATE shop.products SET stock = 7, tags = tags + {'sale'} WHERE id = 3;\nSELECT * FROM shop.products WHERE id = 3"],
  ["Only if it is so", "UPDATE shop.products SET stock = 6 WHERE id = 3 IF stock = 7"],
  ["The nodes as they see each other", "SELECT peer, data_center, rack, host_id FROM system.peers"],
  ["A mistake", "SELEC * FROM shop.products"],
];

export class Queries {
  #driver;
  #done;
  #last;

  constructor(driver, done) {
    this.#driver = driver;
    this.#done = done;
    const form = byId("form");
    const put = enliven(form);
    const examples = byId("examples");
    examples.append(element("option", { value: "" }, "Examples"), ...EXAMPLES.map(([name], at) => element("option", { value: at }, name)));
    examples.addEventListener("change", () => {
      if (examples.value === "") return;
      put(EXAMPLES[examples.value][1]);
      examples.value = "";
      this.#run();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#run();
    });
    byId("more").addEventListener("click", () => this.#more());
    put(EXAMPLES[2][1]);
    this.#run();
  }

  async #run() {
    const consistency = byId("consistency").value;
    byId("more").hidden = true;
    try {
      let result;
      for (const text of statements(byId("text").value)) {
        this.#last = { text, options: { consistency, pageSize: PAGE } };
        result = await this.#driver.run(text, this.#last.options);
        this.#done(result);
      }
      if (result) this.#show(result, false);
    } catch (error) {
      this.#fail(error);
    }
  }

  async #more() {
    const { text, options } = this.#last;
    try {
      const result = await this.#driver.run(text, { ...options, pagingState: this.#last.pagingState });
      this.#done(result);
      this.#show(result, true);
    } catch (error) {
      this.#fail(error);
    }
  }

  #show(result, isMore) {
    showRows(result, isMore);
    this.#last.pagingState = result.pagingState;
    byId("more").hidden = result.pagingState === undefined;
    const count = byId("rows").querySelectorAll("tbody tr").length;
    const what = result.columns.length === 0 ? "Done" : `${count} ${count === 1 ? "row" : "rows"}${result.pagingState ? ", and more" : ""}`;
    const answer = byId("answer");
    answer.className = "answer";
    answer.replaceChildren(`${what} in ${milliseconds(result.time)} ms`);
    if (result.node !== undefined) answer.append(" from ", chip(result.node, result.shard));
    if (result.warnings?.length) answer.append(` · warning: ${result.warnings.join("; ")}`);
  }

  #fail(error) {
    const answer = byId("answer");
    answer.className = "answer bad";
    const applied = error.applied ? "; it may have been applied" : "";
    answer.replaceChildren(`${error.kind ?? "error"}: ${error.message}${applied}`);
    showRows({ columns: [], rows: [] }, false);
  }
}
