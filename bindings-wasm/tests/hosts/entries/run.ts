// What every host's entry does.

import * as api from "messina-cql";
import { run, type Config, type TestResult } from "../../suite/suite.js";
import { tests } from "../../suite/tests.js";

/** Runs the suite, telling each result as one line. */
export function runSuite(config: Config, line: (text: string) => void): Promise<void> {
  return run(tests(api, config), config.only, (result: TestResult) => line(JSON.stringify(result)));
}

/** The names of the tests. */
export const names = (config: Config): string[] => tests(api, config).map(({ name }) => name);
