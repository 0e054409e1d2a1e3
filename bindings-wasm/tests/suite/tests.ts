// The whole suite, in the order in which it runs.

import { connecting } from "./connecting.js";
import { place, type Api } from "./place.js";
import { statements } from "./statements.js";
import type { Config, Test } from "./suite.js";

export function tests(api: Api, config: Config): Test[] {
  const here = place(api, config);
  return [connecting, statements].flatMap((part) => part(here));
}
