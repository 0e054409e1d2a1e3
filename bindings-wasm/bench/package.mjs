// The package of this repository as users get it: by its own name, through its exports.

import { createRequire } from "node:module";

const beside = createRequire(new URL("../package.json", import.meta.url));

/** @type {typeof import("messina-cql")} */
export const { connect } = await import(beside.resolve("messina-cql"));
export const { version } = beside("./package.json");
