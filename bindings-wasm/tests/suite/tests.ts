// The whole suite, in the order in which it runs.

import { connecting } from "./connecting.js";
import { failures } from "./failures.js";
import { entries } from "./entries.js";
import { place, type Entries } from "./place.js";
import { relayed } from "./relayed.js";
import { routing } from "./routing.js";
import { statements } from "./statements.js";
import type { Config, Test } from "./suite.js";
import { values } from "./values.js";
import { wire } from "./wire.js";

export function tests(all: Entries, config: Config): Test[] {
  const here = place(all, config);
  const parts = [connecting, statements, values, routing, wire, relayed, failures].map((part) => part(here));
  return [...parts.flat(), ...entries(here, all)]
    .filter(({ isSimulated }) => config.server === "simulated" || !isSimulated);
}
