// A page, which runs the suite itself or has a dedicated worker run it.

import { runSuite } from "./run.js";

declare const tell: (line: string) => void;

(globalThis as any).begin = (config: any, inWorker: boolean) => {
  if (!inWorker) return runSuite(config, tell);
  return new Promise<void>((resolve, reject) => {
    const worker = new Worker("/dedicated.js", { type: "module" });
    worker.onmessage = ({ data }) => (data === null ? resolve() : tell(data));
    worker.onerror = ({ message }) => reject(new Error(message));
    worker.postMessage(config);
  });
};
