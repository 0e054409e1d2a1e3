// The shell around one module: owns its sockets, its timer and the promises of its requests.
//
// Whatever happens is told to the module at once; what the module wants is fetched once for all
// that happened in the same turn of the event loop, so requests made together share one write.

import { CqlError } from "./error.js";
import { Module, type LinkEffect, type PreparedOutput, type ResultOutput, type Settler } from "./module.js";
import type { RequestOptions } from "./options.js";
import type { CompiledModule, Socket, Sockets } from "./hosts/host.js";
import { Result } from "./result.js";
import type { Types } from "./values/types.js";

/** Later deadlines than this make timers fire at once. */
const TIMEOUT_MAX = 2 ** 31 - 1;

/** What a request brings: a statement's result, what was prepared, or nothing. */
export type Outcome = Result<any> | PreparedOutput | undefined;

/** A request under way. */
interface Pending {
  readonly resolve: (outcome: any) => void;
  readonly reject: (error: unknown) => void;
  readonly unlisten: (() => void) | undefined;
}

/** With more requests than this under way, what came is handled together with what comes in the same turn. */
const ALONE_MAX = 8;

export class Shell implements Settler {
  readonly #module: Module;
  readonly #sockets: Sockets;
  readonly #check: () => void;
  readonly #isRelayed: boolean;
  readonly #later: (task: () => void) => void;
  readonly #links = new Map<number, Socket>();
  /** By their numbers, which are small and used again. */
  readonly #pending: (Pending | undefined)[] = [];
  #pendingCount = 0;
  /** What sockets said when they failed last; goes into the text of errors. */
  #lastFailure = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the timer fires; it is left as it is when nothing is to be done earlier. */
  #timerAt = Infinity;
  #isScheduled = false;
  readonly #drained = () => this.#drain();
  /** Why the shell is of no more use. */
  #end: CqlError | undefined;

  /**
   * @param check throws where this one must not be used, as in another request of a Worker
   * @param later runs a task when everything that is there to be read was read
   */
  constructor(
    compiled: CompiledModule, types: Types, sockets: Sockets, check: () => void = () => {}, isRelayed = false,
    later: (task: () => void) => void = queueMicrotask,
  ) {
    this.#module = new Module(compiled, types);
    this.#sockets = sockets;
    this.#check = check;
    this.#isRelayed = isRelayed;
    this.#later = later;
  }

  /** Whether requests can still be made. */
  get isOver(): boolean {
    return this.#end !== undefined;
  }

  /** A request: `begin` calls the module and returns the request's number. */
  async request<T extends Outcome>(begin: (module: Module) => number, options: RequestOptions = NO_OPTIONS): Promise<T> {
    try {
      return await this.#begun<T>(begin, options);
    } catch (error) {
      throw traced(error);
    }
  }

  #begun<T>(begin: (module: Module) => number, options: RequestOptions): Promise<T> {
    const { signal } = options;
    this.#check();
    if (signal?.aborted) throw aborted(signal, false);
    const number = this.#enter(begin);
    const promise = new Promise<T>(take);
    const { resolve, reject } = taken;
    const unlisten = signal || options.timeout !== undefined ? limit(options, true, (error) => {
      this.#taken(number);
      reject(error);
      this.tell((module) => module.call("cancel", number));
    }) : undefined;
    this.#pending[number] = { resolve, reject, unlisten };
    this.#pendingCount++;
    return promise;
  }

  /** Takes a request that has ended. */
  #taken(request: number): Pending | undefined {
    const pending = this.#pending[request];
    if (!pending) return undefined;
    this.#pending[request] = undefined;
    this.#pendingCount--;
    pending.unlisten?.();
    return pending;
  }

  /** @internal */
  ran(request: number, result: ResultOutput): void {
    this.#taken(request)?.resolve(new Result(result));
  }

  /** @internal */
  did(request: number, statement: PreparedOutput | undefined): void {
    this.#taken(request)?.resolve(statement);
  }

  /** @internal */
  failed(request: number, error: CqlError): void {
    this.#taken(request)?.reject(this.#explained(error));
  }

  /** Asks the module something that it knows. */
  ask<T>(question: (module: Module) => T): T {
    return this.#enter(question);
  }

  /** Waits for what others wait for too, as long as one wants to. */
  async wait<T>(promise: Promise<T>, { signal, timeout }: RequestOptions): Promise<T> {
    let unlisten = () => {};
    // Who gives up does not hear how it ends.
    promise.catch(() => {});
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
    for (let request = 0; request < this.#pending.length; request++) this.#taken(request)?.reject(error);
  }

  #enter<T>(action: (module: Module) => T, schedule: (task: () => void) => void = queueMicrotask): T {
    if (this.#end) throw this.#end;
    try {
      if (!this.#isScheduled) {
        this.#isScheduled = true;
        this.#module.tick();
        schedule(this.#drained);
      }
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
      const { deadline, effects } = this.#module.outputs(this);
      if (deadline < this.#timerAt) this.#arm(deadline);
      for (const effect of effects) this.#carryOut(effect);
    } catch (error) {
      this.end(error instanceof CqlError ? error : new CqlError("bug", String(error), { cause: error, applied: true }));
    }
  }

  #arm(deadline: number): void {
    clearTimeout(this.#timer);
    this.#timerAt = deadline;
    const wait = Math.min(Math.max(Math.ceil(deadline - performance.now()), 0), TIMEOUT_MAX);
    this.#timer = setTimeout(() => {
      this.#timerAt = Infinity;
      this.tell(() => {});
    }, wait);
  }

  #carryOut(effect: LinkEffect): void {
    if (effect.do === "send") {
      const { link, bytes: { length } } = effect;
      const socket = this.#links.get(link);
      socket?.send(effect.bytes, () => this.#sent(link, socket, length));
    } else if (effect.do === "connect") {
      this.#open(effect);
    } else {
      const socket = this.#links.get(effect.link);
      this.#links.delete(effect.link);
      socket?.[effect.do]();
    }
  }

  /** The network has taken bytes. Mostly nobody waits for that, and nothing is to be done. */
  #sent(link: number, socket: Socket, length: number): void {
    if (this.#end || this.#links.get(link) !== socket) return;
    try {
      if (this.#module.sent(link, length)) this.tell(() => {});
    } catch (error) {
      this.end(error as CqlError);
    }
  }

  /** What the module cannot know: the words of the platform for a failed socket. */
  #explained(error: CqlError): CqlError {
    const { kind, message } = error;
    if (!this.#lastFailure || (kind !== "transport" && kind !== "timeout")) return error;
    const told = kind === "transport" && this.#isRelayed ? "relay" : kind;
    return new CqlError(told, `${message} (${this.#lastFailure})`, { ...error, transient: error.retryable });
  }

  #open({ link, host, port, wish }: Extract<LinkEffect, { do: "connect" }>): void {
    const socket = this.#sockets(host, port, {
      opened: () => this.#heard(link, socket, (module) => {
        this.#lastFailure = "";
        module.call("link_opened", link);
      }),
      data: (bytes) => this.#heard(link, socket, (module) => module.feed(link, bytes), this.#pendingCount > ALONE_MAX ? this.#later : undefined),
      closed: () => this.#heard(link, socket, (module) => module.call("link_closed", link)),
      failed: (reason, detail) => this.#heard(link, socket, (module) => {
        if (detail) this.#lastFailure = detail.trim();
        module.linkFailed(link, reason);
      }),
    }, wish);
    this.#links.set(link, socket);
  }

  /** A socket's word, unless its link is gone and the number belongs to another by now. */
  #heard(link: number, socket: Socket, say: (module: Module) => void, schedule?: (task: () => void) => void): void {
    if (this.#links.get(link) !== socket || this.#end) return;
    try {
      this.#enter(say, schedule);
    } catch {
      // Whoever waits for anything has been told.
    }
  }
}

const NO_OPTIONS: RequestOptions = {};

/** What the promise that is made next is settled with; spares each request a function. */
const taken = { resolve: (_: any) => {}, reject: (_: unknown) => {} };

function take(resolve: (outcome: any) => void, reject: (error: unknown) => void): void {
  taken.resolve = resolve;
  taken.reject = reject;
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
  const unheard = signal && heard(signal, abort);
  function unlisten() {
    clearTimeout(timer);
    unheard?.();
  }
  return unlisten;
}

/** What is called when a signal comes. */
const awaited = new WeakMap<AbortSignal, Set<() => void>>();

/** The one listener of all signals: of many at one signal platforms warn, and become slow. */
const callAll = ({ target }: Event) => awaited.get(target as AbortSignal)?.forEach((call) => call());

/** Has a function called when the signal comes; the function that is returned ends that. */
function heard(signal: AbortSignal, call: () => void): () => void {
  const calls = awaited.get(signal) ?? new Set();
  awaited.set(signal, calls.add(call));
  // What listens already is not added again.
  signal.addEventListener("abort", callAll);
  return () => {
    calls.delete(call);
    if (calls.size === 0) signal.removeEventListener("abort", callAll);
  };
}
