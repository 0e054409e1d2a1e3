// Vercel's edge VM: a function that the runner calls.

import { runSuite } from "./run.js";

(globalThis as any).runSuite = runSuite;
