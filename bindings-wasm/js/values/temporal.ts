// The platform's Temporal, where it is asked for.

import { CqlError } from "../error.js";

/** A class of Temporal by its name. */
export function temporal(name: "Instant" | "PlainDate" | "PlainTime" | "Duration"): any {
  const found = (globalThis as any).Temporal?.[name];
  if (!found) throw new CqlError("config", "values.temporal: this runtime has no Temporal");
  return found;
}
