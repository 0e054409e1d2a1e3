// A line of the last minute.

import { drawn } from "./element.js";

const POINTS = 120;
const [WIDTH, HEIGHT] = [240, 28];

export class Spark {
  #lines = [];
  #shapes;

  /** `top` fixes the scale, such as 1 for shares; without it the highest point does. */
  constructor(root, { lines = 1, top } = {}) {
    this.top = top;
    root.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    root.setAttribute("preserveAspectRatio", "none");
    this.#lines = Array.from({ length: lines }, () => []);
    this.#shapes = [drawn("path", { class: "area" }), drawn("path", { class: "line" }), drawn("path", { class: "second" })];
    root.replaceChildren(...this.#shapes);
  }

  /** One point for each line; null leaves a gap at the value before. */
  push(...values) {
    this.#lines.forEach((line, at) => {
      line.push(values[at] ?? line.at(-1) ?? 0);
      if (line.length > POINTS) line.shift();
    });
    const top = this.top ?? Math.max(...this.#lines.flat(), 1e-9);
    const [first, second] = this.#lines.map((line) => path(line, top));
    const [area, line, other] = this.#shapes;
    const start = WIDTH - (this.#lines[0].length - 1) * (WIDTH / (POINTS - 1));
    area.setAttribute("d", `${first}L${WIDTH},${HEIGHT}L${start.toFixed(1)},${HEIGHT}Z`);
    line.setAttribute("d", first);
    if (second) other.setAttribute("d", second);
  }
}

function path(line, top) {
  const step = WIDTH / (POINTS - 1);
  const points = line.map((value, at) => {
    const x = WIDTH - (line.length - 1 - at) * step;
    const y = HEIGHT - 1.5 - Math.min(value / top, 1) * (HEIGHT - 4);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  return `M${points.join("L")}`;
}
