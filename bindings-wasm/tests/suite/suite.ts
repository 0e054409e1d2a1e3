// The suite's runner: the same in every host, so it uses nothing but the language, timers and `fetch`.

import type { RoundTrips } from "../../bench/round-trips.mjs";

/** What the suite is told of the place it runs in. */
export interface Config {
  /** The host and its version, for people. */
  host: string;
  /** How bytes travel: TCP, one WebSocket for all links, or one for each. */
  transport: "tcp" | "mux" | "cql";
  /** Nodes of the cluster: a simulated one of 3 × 2 shards, or one node of Cassandra. */
  contact: string[];
  server: "simulated" | "Cassandra";
  /** What it wants, if anything. */
  login?: { user: string; password: string };
  /** A node that wants a login. */
  guarded: { contact: string; user: string; password: string };
  /** A node that speaks TLS, and the authority that signed its certificate. */
  tls: { contact: string; ca: string };
  /** Whether the host trusts that authority when it is told to. */
  canTrust: boolean;
  /** A port where nobody listens, and one where nobody answers. */
  closed: string;
  silent: string;
  relay: { url: string; token: string };
  /** A plain WebSocket-to-TCP pipe; see `hosts/pipe.mjs`. */
  pipe: string;
  /** A node of the cluster behind one that answers marked requests itself; see `hosts/intercept.mjs`. */
  intercepted: string;
  /** Where the servers are steered from, over HTTP. */
  control: string;
  /** Measure these and run no test. */
  roundTrips?: RoundTrips;
  /** Names of tests to run; all if it is absent. */
  only?: string[];
}

export interface Test {
  name: string;
  /** It steers the simulated cluster, or counts on what that is. */
  isSimulated?: boolean;
  run(): Promise<void>;
}

export interface TestResult {
  name: string;
  ms: number;
  /** What went wrong, if anything did. */
  failure?: string;
}

/** No test takes longer in the slowest host. */
const TEST_MAX_MS = 30_000;

/** Runs tests one after the other and tells each result as it comes. */
export async function run(tests: Test[], only: string[] | undefined, log: (result: TestResult) => void): Promise<void> {
  for (const test of tests) {
    if (only && !only.includes(test.name)) continue;
    const started = performance.now();
    let failure: string | undefined;
    try {
      await within(TEST_MAX_MS, test.run());
    } catch (error) {
      failure = described(error);
    }
    log({ name: test.name, ms: performance.now() - started, ...(failure !== undefined && { failure }) });
  }
}

/** Rejects if `promise` takes longer than `ms`. */
export function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Tries until it goes well, for ten seconds. */
export async function eventually(attempt: () => Promise<void>): Promise<void> {
  for (let left = 100; ; left--) {
    try {
      return await attempt();
    } catch (error) {
      if (left === 0) throw error;
      await sleep(100);
    }
  }
}

function described(error: unknown): string {
  if (!(error instanceof Error) && !(error as Error)?.stack) return String(error);
  const { stack, message, cause } = error as Error;
  // Not every host puts the message into the stack.
  const text = stack?.includes(message) ? stack : `${message}\n${stack}`;
  return cause === undefined ? text : `${text}\ncaused by ${described(cause)}`;
}
