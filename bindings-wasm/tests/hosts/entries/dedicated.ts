// A dedicated worker of a page.

import { runSuite } from "./run.js";

self.onmessage = async ({ data }) => {
  await runSuite(data, (line) => self.postMessage(line));
  self.postMessage(null);
};
