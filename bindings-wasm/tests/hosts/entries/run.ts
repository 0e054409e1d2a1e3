// What every host's entry does.

import * as api from "messina-cql";
import * as compat from "messina-cql/compat";
import * as lite from "messina-cql/lite";
import type { WebSocketClass } from "messina-cql";
import { run, type Config, type TestResult } from "../../suite/suite.js";
import { tests } from "../../suite/tests.js";

const entries = { api, compat, lite };

/** Runs the suite, telling each result as one line. */
export function runSuite(config: Config, line: (text: string) => void, ws?: WebSocketClass): Promise<void> {
  const all = tests({ ...entries, ws }, config);
  return run(all, config.only, (result: TestResult) => line(JSON.stringify(result)));
}

/** The names of the tests. */
export const names = (config: Config): string[] => tests({ ...entries, ws: undefined }, config).map(({ name }) => name);
