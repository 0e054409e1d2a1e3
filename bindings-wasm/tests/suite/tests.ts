// The whole suite, in the order in which it runs.

import { connecting } from "./connecting.js";
import { failures } from "./failures.js";
import { place, type Api } from "./place.js";
import { relayed } from "./relayed.js";
import { routing } from "./routing.js";
import { statements } from "./statements.js";
import type { Config, Test } from "./suite.js";
import { values } from "./values.js";
import { wire } from "./wire.js";

export function tests(api: Api, config: Config): Test[] {
  const here = place(api, config);
  return [connecting, statements, values, routing, wire, relayed, failures].flatMap((part) => part(here))
    .filter(({ isSimulated }) => config.server === "simulated" || !isSimulated);
}
