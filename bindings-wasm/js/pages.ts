// Pages that follow each other, asked for ahead of their use but never far ahead.

import { CqlError } from "./error.js";
import type { PageOptions, RunOptions } from "./options.js";
import type { Result } from "./result.js";

const PREFETCH_MAX = 8;

/**
 * Every page of a statement. While one is in use, `prefetch` more are fetched, and no further one is asked for before
 * the next is taken. Leaving the loop gives up what is under way.
 */
export async function* pages<Row>(
  run: (options: RunOptions) => Promise<Result<Row>>,
  { prefetch = 1, ...options }: RunOptions & PageOptions,
): AsyncIterableIterator<Result<Row>> {
  if (!(prefetch >= 0 && prefetch <= PREFETCH_MAX)) {
    throw new CqlError("usage", `prefetch is a number of pages from 0 to ${PREFETCH_MAX}`);
  }
  const { signal } = options;
  const left = new AbortController();
  const pass = () => left.abort(signal!.reason);
  if (signal?.aborted) pass();
  signal?.addEventListener("abort", pass, { once: true });
  const fetch = (pagingState: string | undefined) => run({ ...options, pagingState, signal: left.signal });
  let last: Promise<Result<Row> | undefined> = fetch(options.pagingState);
  const ahead = [last];
  try {
    for (;;) {
      while (ahead.length <= prefetch) {
        // Who waits for a page hears of its failure; for one that is never waited for nobody has to.
        last.catch(() => {});
        last = last.then((page) => page?.pagingState === undefined ? undefined : fetch(page.pagingState));
        ahead.push(last);
      }
      const page = await ahead.shift();
      if (!page) return;
      yield page;
    }
  } finally {
    last.catch(() => {});
    signal?.removeEventListener("abort", pass);
    left.abort();
  }
}
