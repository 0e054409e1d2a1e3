// What the tests of the parts need; not part of the package.

export { sockets } from "#host";
export * from "./index.js";
export { putValues } from "./statement.js";
export { Cells, Writer } from "./bytes.js";
export { Result as PageResult } from "./result.js";
export { Module } from "./module.js";
export { pagingBytes, urlText } from "./options.js";
export { pages } from "./pages.js";
export { Shell } from "./shell.js";
export * from "./values/codec.js";
export { Types } from "./values/types.js";
