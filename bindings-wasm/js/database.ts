// What users hold.

import { batchType, putParts, type BatchOptions, type BatchPart } from "./batch.js";
import { Writer } from "./bytes.js";
import { readCluster, type Cluster } from "./cluster.js";
import { CqlError } from "./error.js";
import { BATCH, NO_OPTIONS, REQUEST, checkNames, numbersOf, putOptions, type RequestOptions, type RunOptions } from "./options.js";
import { Query, templateText } from "./query.js";
import type { PreparedOutput } from "./module.js";
import type { AnyRow, Result } from "./result.js";
import type { Shell } from "./shell.js";
import { Statement, type Values } from "./statement.js";
import type { Types } from "./values/types.js";

/** Older runtimes lack the symbol; compilers of `await using` then take this one. */
const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? (Symbol.for("Symbol.asyncDispose") as never);

/** Statements that `query` and `execute` keep prepared. */
const PREPARED_MAX = 256;

/** A cluster. */
export class Database implements AsyncDisposable {
  static readonly name: string = "Database";
  readonly #shell: Shell;
  readonly #types: Types;
  /** By their text; the one that was used last stands last. */
  readonly #prepared = new Map<string, Promise<Statement<any, any>>>();
  #closing: Promise<void> | undefined;
  /** Requests whose statements are being prepared; the end waits until they have begun. */
  #preparing = 0;
  #allBegun = () => {};
  /** Tells the module of statements that nobody holds any more. */
  readonly #dropped: FinalizationRegistry<number>;

  /** @internal */
  constructor(shell: Shell, types: Types) {
    this.#shell = shell;
    this.#types = types;
    this.#dropped = new FinalizationRegistry((number) => shell.tell((module) => module.release(number)));
  }

  /**
   * A statement as a template: its values are always bound, never put into the text. It runs when it is awaited.
   *
   * @example const { first } = await db.query`SELECT name FROM customer WHERE id = ${id}`;
   */
  query<Row = AnyRow>(strings: TemplateStringsArray, ...values: unknown[]): Query<Row> {
    const text = templateText(strings, values, "query");
    return new Query<Row>((text, values, options) => this.execute(text, values, options), text, values);
  }

  /** The first row of such a statement; null if there is none. */
  async one<Row = AnyRow>(strings: TemplateStringsArray, ...values: unknown[]): Promise<Row | null> {
    return (await this.execute<Row>(templateText(strings, values, "one"), values)).first;
  }

  /** Runs a text. With values it is prepared first, and kept prepared while it is used. */
  async execute<Row = AnyRow>(text: string, values?: Values, options: RunOptions = NO_OPTIONS): Promise<Result<Row>> {
    if (typeof text !== "string") throw new CqlError("usage", `a statement is a string, not ${typeof text}`);
    const { numbers, state } = numbersOf(options);
    if (values !== undefined && (!Array.isArray(values) || values.length > 0)) {
      return this.#begin(() => this.#keptPrepared(text, options), (statement) => statement.run(values, options));
    }
    const write = (writer: Writer) => {
      putOptions(writer, options, state);
      writer.text(text);
    };
    return this.#shell.request<Result<Row>>((module) => module.callWith("query", write, ...numbers), { signal: options.signal });
  }

  /** Prepares a statement, to be run often. */
  async prepare<Params = Values, Row = AnyRow>(text: string, options: RequestOptions = {}): Promise<Statement<Params, Row>> {
    checkNames(options, REQUEST);
    const statement = await this.#shell.request<PreparedOutput>(
      (module) => module.callWith("prepare", (writer) => writer.text(text)),
      options,
    );
    if (!statement) throw new CqlError("bug", "nothing was prepared");
    const prepared = new Statement<Params, Row>(this.#shell, this.#types, statement);
    this.#dropped.register(prepared, statement.number);
    return prepared;
  }

  /**
   * Runs several statements as one request.
   *
   * @example await db.batch([db.query`UPDATE a SET v = ${v} WHERE k = ${k}`, [insert, [k, v]]], { type: "unlogged" });
   */
  async batch(parts: readonly BatchPart[], options: BatchOptions = {}): Promise<Result> {
    const { numbers } = numbersOf(options, BATCH);
    const type = batchType(options);
    const writer = new Writer();
    putOptions(writer, options, undefined);
    return this.#begin(() => putParts(writer, parts, (text) => this.#keptPrepared(text, options)), () => this.#shell.request<Result>(
      (module) => module.callWith("batch", (input) => input.bytes(writer.written), type, ...numbers),
      { signal: options.signal },
    ));
  }

  /** What a later `connect` may begin with, to be kept where it outlives this one; empty if it would be longer. */
  warmStart(maxBytes = 64 << 10): Uint8Array {
    return this.#shell.ask((module) => module.warmStart(maxBytes));
  }

  /** What is known of the cluster: nodes, shards, and so many of each table's tablets. */
  cluster(tabletsMax = 256): Cluster {
    const cluster = this.#shell.ask((module) => readCluster(module.cluster(tabletsMax)));
    return cluster ?? { reached: 0, missed: 0, connects: 0, prepared: 0, nodes: [], tables: [] };
  }

  /** Whether it was closed, or has ended by a fault of the module. Broken connections are made anew by themselves. */
  get isClosed(): boolean {
    return this.#shell.isOver;
  }

  /** Requests under way finish, then every socket is closed. Giving up (`signal`, `timeout`) closes them at once. */
  close(options: RequestOptions = {}): Promise<void> {
    return (this.#closing ??= this.#close(options));
  }

  async #close(options: RequestOptions): Promise<void> {
    if (this.#shell.isOver) return;
    try {
      await this.#shell.wait(this.#finish(), options);
    } finally {
      this.#shell.end(closed());
    }
  }

  async #finish(): Promise<void> {
    if (this.#preparing > 0) await new Promise<void>((begun) => { this.#allBegun = begun; });
    await this.#shell.request<undefined>((module) => module.call("close"));
  }

  [asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Makes a request once what it needs is there. */
  async #begin<Needed, T>(need: () => Promise<Needed>, request: (needed: Needed) => Promise<T>): Promise<T> {
    if (this.#closing) throw closed();
    this.#preparing++;
    try {
      return request(await need());
    } finally {
      if (--this.#preparing === 0) this.#allBegun();
    }
  }

  #keptPrepared(text: string, { signal, timeout }: RequestOptions): Promise<Statement<any, any>> {
    const kept = this.#prepared.get(text);
    this.#prepared.delete(text);
    const statement = kept ?? this.prepare(text);
    this.#prepared.set(text, statement);
    if (!kept) {
      statement.catch(() => this.#prepared.get(text) === statement && this.#prepared.delete(text));
      if (this.#prepared.size > PREPARED_MAX) this.#prepared.delete(this.#prepared.keys().next().value!);
    }
    return this.#shell.wait(statement, { signal, timeout });
  }
}

const closed = () => new CqlError("usage", "the database is closed");
