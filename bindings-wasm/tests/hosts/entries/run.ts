// What every host's entry does: run the suite, or measure round trips.

import * as api from "messina-cql";
import * as compat from "messina-cql/compat";
import * as lite from "messina-cql/lite";
import type { WebSocketClass } from "messina-cql";
import { roundTrips } from "../../../bench/round-trips.mjs";
import { run, type Config, type TestResult } from "../../suite/suite.js";
import { tests } from "../../suite/tests.js";

const entries = { api, compat, lite };

/** Runs the suite, or what it is told to measure; each result is one line. */
export function runSuite(config: Config, line: (text: string) => void, ws?: WebSocketClass): Promise<void> {
  if (config.roundTrips) return roundTrips(config.roundTrips, (result) => line(JSON.stringify(result)));
  const all = tests({ ...entries, ws }, config);
  return run(all, config.only, (result: TestResult) => line(JSON.stringify(result)));
}

/** The names of the tests. */
export const names = (config: Config): string[] => tests({ ...entries, ws: undefined }, config).map(({ name }) => name);
