// The shell around one module: owns its sockets, its timer and the promises of its requests.
//
// Whatever happens is told to the module at once; what the module wants is fetched once for all
// that happened in the same turn of the event loop, so requests made together share one write.

import { CqlError } from "./error.js";
import { Module, type Effect, type Settled } from "./module.js";
import type { RequestOptions } from "./options.js";
import type { Socket, Sockets } from "./hosts/host.js";

/** Later deadlines than this make timers fire at once. */
const TIMEOUT_MAX = 2 ** 31 - 1;

interface Pending {
  resolve(outcome: Settled): void;
  reject(error: unknown): void;
  unlisten(): void;
}

export class Shell {
  readonly #module: Module;
  readonly #sockets: Sockets;
  readonly #check: () => void;
  readonly #isRelayed: boolean;
  readonly #links = new Map<number, Socket>();
  readonly #pending = new Map<number, Pending>();
  /** What sockets said when they failed last; goes into the text of errors. */
  #lastFailure = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isScheduled = false;
  /** Why the shell is of no more use. */
  #end: CqlError | undefined;

  /** @param check throws where this one must not be used, as in another request of a Worker */
  constructor(compiled: WebAssembly.Module, sockets: Sockets, check: () => void = () => {}, isRelayed = false) {
    this.#module = new Module(compiled);
    this.#sockets = sockets;
    this.#check = check;
    this.#isRelayed = isRelayed;
  }

  /** Whether requests can still be made. */
  get isOver(): boolean {
    return this.#end !== undefined;
  }

  /** A request: `begin` calls the module and returns the request's number. */
  async request(begin: (module: Module) => number, options: RequestOptions = {}): Promise<Settled> {
    try {
      return await this.#settled(begin, options);
    } catch (error) {
      throw traced(error);
    }
  }

  #settled(begin: (module: Module) => number, { signal, timeout }: RequestOptions): Promise<Settled> {
    return new Promise((resolve, reject) => {
      this.#check();
      if (signal?.aborted) throw aborted(signal, false);
      const number = this.#enter(begin);
      const unlisten = limit({ signal, timeout }, true, (error) => {
        this.#pending.delete(number);
        reject(error);
        this.tell((module) => module.call("cancel", number));
      });
      this.#pending.set(number, { resolve, reject, unlisten });
    });
  }

  /** Asks the module something that it knows. */
  ask<T>(question: (module: Module) => T): T {
    return this.#enter(question);
  }

  /** Waits for what others wait for too, as long as one wants to. */
  async wait<T>(promise: Promise<T>, { signal, timeout }: RequestOptions): Promise<T> {
    let unlisten = () => {};
    try {
      this.#check();
      if (signal?.aborted) throw aborted(signal, false);
      if (!signal && timeout === undefined) return await promise;
      const givenUp = new Promise<never>((_, reject) => { unlisten = limit({ signal, timeout }, false, reject); });
      return await Promise.race([promise, givenUp]);
    } catch (error) {
      throw traced(error);
    } finally {
      unlisten();
    }
  }

  /** Tells the module something that nobody waits for. */
  tell(say: (module: Module) => void): void {
    try {
      if (!this.#end) this.#enter(say);
    } catch {
      // Whoever waits for anything has been told.
    }
  }

  /** Ends everything: sockets, timer, promises. */
  end(error: CqlError): void {
    if (this.#end) return;
    this.#end = error;
    clearTimeout(this.#timer);
    for (const socket of this.#links.values()) socket.abort();
    this.#links.clear();
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject, unlisten } of pending) {
      unlisten();
      reject(error);
    }
  }

  #enter<T>(action: (module: Module) => T): T {
    if (this.#end) throw this.#end;
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      queueMicrotask(() => this.#drain());
    }
    try {
      return action(this.#module);
    } catch (error) {
      if (error instanceof CqlError && error.kind === "bug") this.end(error);
      throw error;
    }
  }

  #drain(): void {
    this.#isScheduled = false;
    if (this.#end) return;
    try {
      const { deadline, effects } = this.#module.outputs();
      this.#arm(deadline);
      for (const effect of effects) this.#carryOut(effect);
    } catch (error) {
      this.end(error instanceof CqlError ? error : new CqlError("bug", String(error), { cause: error, applied: true }));
    }
  }

  #arm(deadline: number): void {
    clearTimeout(this.#timer);
    if (deadline === Infinity) return;
    const wait = Math.min(Math.max(Math.ceil(deadline - performance.now()), 0), TIMEOUT_MAX);
    this.#timer = setTimeout(() => this.tell(() => {}), wait);
  }

  #carryOut(effect: Effect): void {
    switch (effect.do) {
      case "settle": {
        const { request, outcome } = effect;
        const pending = this.#pending.get(request);
        this.#pending.delete(request);
        pending?.unlisten();
        if (outcome.error) pending?.reject(this.#explained(outcome.error));
        else pending?.resolve(outcome);
        return;
      }
      case "connect":
        return this.#open(effect);
      case "send": {
        const { link, bytes } = effect;
        const socket = this.#links.get(link);
        return socket?.send(bytes, () => this.#heard(link, socket, (module) => module.call("link_sent", link, bytes.length)));
      }
      default: {
        const socket = this.#links.get(effect.link);
        this.#links.delete(effect.link);
        return socket?.[effect.do]();
      }
    }
  }

  /** What the module cannot know: the words of the platform for a failed socket. */
  #explained(error: CqlError): CqlError {
    const { kind, message } = error;
    if (!this.#lastFailure || (kind !== "transport" && kind !== "timeout")) return error;
    const told = kind === "transport" && this.#isRelayed ? "relay" : kind;
    return new CqlError(told, `${message} (${this.#lastFailure})`, { ...error, transient: error.retryable });
  }

  #open({ link, host, port, wish }: Extract<Effect, { do: "connect" }>): void {
    const socket = this.#sockets(host, port, {
      opened: () => this.#heard(link, socket, (module) => {
        this.#lastFailure = "";
        module.call("link_opened", link);
      }),
      data: (bytes) => this.#heard(link, socket, (module) => module.callWith("feed", bytes, link)),
      closed: () => this.#heard(link, socket, (module) => module.call("link_closed", link)),
      failed: (reason, detail) => this.#heard(link, socket, (module) => {
        if (detail) this.#lastFailure = detail;
        module.linkFailed(link, reason);
      }),
    }, wish);
    this.#links.set(link, socket);
  }

  /** A socket's word, unless its link is gone and the number belongs to another by now. */
  #heard(link: number, socket: Socket, say: (module: Module) => void): void {
    if (this.#links.get(link) === socket) this.tell(say);
  }
}

function aborted(signal: AbortSignal, applied: boolean): CqlError {
  return new CqlError("aborted", "the request was aborted", { cause: signal.reason, applied });
}

/** Tells the stack anew: where an error was made there was nothing but this package, here engines know who waits. */
function traced(error: unknown): unknown {
  (Error as { captureStackTrace?(error: unknown): void }).captureStackTrace?.(error);
  return error;
}

/** Calls `giveUp` when the options say so; the function that is returned ends that. */
function limit({ signal, timeout }: RequestOptions, applied: boolean, giveUp: (error: CqlError) => void): () => void {
  if (!signal && timeout === undefined) return () => {};
  const end = (error: CqlError) => {
    unlisten();
    giveUp(error);
  };
  const abort = () => end(aborted(signal!, applied));
  const timer = timeout === undefined ? undefined : setTimeout(
    () => end(new CqlError("timeout", `no answer within ${timeout} ms`, { applied })),
    Math.min(timeout, TIMEOUT_MAX),
  );
  signal?.addEventListener("abort", abort, { once: true });
  function unlisten() {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
  return unlisten;
}
