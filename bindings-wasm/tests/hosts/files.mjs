// The files of the page that runs in Chromium.

import { readFileSync } from "node:fs";

const TYPES = { html: "text/html", js: "text/javascript", wasm: "application/wasm" };

/** The page's files, under the policy that the documentation asks for. */
export function files(/** @type {string} */ path, /** @type {import("node:http").ServerResponse} */ response) {
  const name = path.slice(1);
  const type = TYPES[/** @type {keyof typeof TYPES} */ (name.split(".").pop())];
  // Every browser asks for it.
  if (name === "favicon.ico") return response.writeHead(204).end(), true;
  if (!/^[\w-]+\.\w+$/.test(name) || !type) return false;
  response.setHeader("content-type", type);
  response.setHeader("content-security-policy",
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self' ws://127.0.0.1:*");
  const html = `<!doctype html><title>hosts</title><script type="module" src="/page.js"></script>`;
  const place = type === TYPES.wasm ? "../../dist" : "built";
  response.end(type === TYPES.html ? html : readFileSync(new URL(`${place}/${name}`, import.meta.url)));
  return true;
}
