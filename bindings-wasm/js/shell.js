// The shell around one module: owns its sockets, its timer and the promises of its requests.
//
// Whatever happens is told to the module at once; what the module wants is fetched once for all
// that happened in the same turn of the event loop, so requests made together share one write.

import { CqlError } from "./error.js";
import { Module } from "./module.js";

/** Later deadlines than this make timers fire at once. */
const TIMEOUT_MAX = 2 ** 31 - 1;

/** @typedef {{ resolve: (settled: any) => void, reject: (error: unknown) => void, unlisten: () => void }} Pending */

export class Shell {
  #module;
  #sockets;
  /** @type {Map<number, import("./index.d.ts").Socket>} */
  #links = new Map();
  /** @type {Map<number, Pending>} */
  #pending = new Map();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #isScheduled = false;
  /** Why the shell is of no more use. @type {CqlError | undefined} */
  #end;

  /**
   * @param {WebAssembly.Module} compiled
   * @param {import("./index.d.ts").Sockets} sockets
   */
  constructor(compiled, sockets) {
    this.#module = new Module(compiled);
    this.#sockets = sockets;
  }

  /**
   * A request: `begin` calls the module and returns the request's number.
   *
   * @param {(module: Module) => number} begin
   * @param {AbortSignal} [signal]
   * @returns {Promise<{ statement?: import("./module.js").PreparedOutput, rows?: import("./module.js").ResultOutput }>}
   */
  request(begin, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) throw aborted(signal, false);
      const number = this.#enter(begin);
      const abort = () => {
        this.#pending.delete(number);
        reject(aborted(/** @type {AbortSignal} */ (signal), true));
        this.tell((module) => module.call("cancel", number));
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#pending.set(number, { resolve, reject, unlisten: () => signal?.removeEventListener("abort", abort) });
    });
  }

  /** Tells the module something that nobody waits for. @param {(module: Module) => void} say */
  tell(say) {
    try {
      if (!this.#end) this.#enter(say);
    } catch {
      // Whoever waits for anything has been told.
    }
  }

  /** Asks the module something that it knows. @template T @param {(module: Module) => T} question @returns {T} */
  ask(question) {
    return this.#enter(question);
  }

  /** Ends everything: sockets, timer, promises. @param {CqlError} error */
  end(error) {
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

  /** @template T @param {(module: Module) => T} action @returns {T} */
  #enter(action) {
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

  #drain() {
    this.#isScheduled = false;
    if (this.#end) return;
    try {
      const { deadline, effects } = this.#module.outputs();
      this.#arm(deadline);
      for (const effect of effects) this.#carryOut(effect);
    } catch (error) {
      this.end(/** @type {CqlError} */ (error));
    }
  }

  /** @param {number} deadline */
  #arm(deadline) {
    clearTimeout(this.#timer);
    if (deadline === Infinity) return;
    const wait = Math.min(Math.max(Math.ceil(deadline - performance.now()), 0), TIMEOUT_MAX);
    this.#timer = setTimeout(() => this.tell(() => {}), wait);
  }

  /** @param {import("./module.js").Effect} effect */
  #carryOut(effect) {
    if (effect.do === "settle") {
      const pending = this.#pending.get(effect.request);
      this.#pending.delete(effect.request);
      pending?.unlisten();
      if (effect.error) pending?.reject(effect.error);
      else pending?.resolve(effect);
    } else if (effect.do === "connect") {
      this.#open(effect.link, effect.host, effect.port, effect.wish);
    } else if (effect.do === "send") {
      const { link, bytes } = effect;
      const socket = this.#links.get(link);
      socket?.send(bytes, () => this.#heard(link, socket, (module) => module.call("link_sent", link, bytes.length)));
    } else {
      const socket = this.#links.get(effect.link);
      this.#links.delete(effect.link);
      socket?.[effect.do]();
    }
  }

  /** @param {number} link @param {string} host @param {number} port @param {import("./module.js").Wish} wish */
  #open(link, host, port, wish) {
    const socket = this.#sockets(host, port, {
      opened: () => this.#heard(link, socket, (module) => module.call("link_opened", link)),
      data: (bytes) => this.#heard(link, socket, (module) => module.callWith("feed", bytes, link)),
      closed: () => this.#heard(link, socket, (module) => module.call("link_closed", link)),
      failed: (reason) => this.#heard(link, socket, (module) => module.linkFailed(link, reason)),
    }, wish);
    this.#links.set(link, socket);
  }

  /**
   * A socket's word, unless its link is gone and the number belongs to another by now.
   *
   * @param {number} link
   * @param {import("./index.d.ts").Socket} socket
   * @param {(module: Module) => void} say
   */
  #heard(link, socket, say) {
    if (this.#links.get(link) === socket) this.tell(say);
  }
}

/** @param {AbortSignal} signal @param {boolean} applied */
function aborted(signal, applied) {
  return new CqlError("aborted", "the request was aborted", { cause: signal.reason, applied });
}
