// The tagged template: a statement whose values are bound, run when it is awaited.

import { CqlError } from "./error.js";
import type { PageOptions, RunOptions } from "./options.js";
import { pages } from "./pages.js";
import type { AnyRow, ColumnValues, Result } from "./result.js";

/** Runs a text with its values. */
export type Run = (text: string, values: readonly unknown[], options: RunOptions) => Promise<Result<any>>;

/** A statement that runs when it is awaited or iterated, once however often. */
export class Query<Row = AnyRow> implements PromiseLike<Result<Row>>, AsyncIterable<Row> {
  static readonly name: string = "Query";
  readonly #run: Run;
  readonly #options: RunOptions & PageOptions;
  #running: Promise<Result<Row>> | undefined;
  /** The statement, with a `?` for each value. */
  declare readonly text: string;
  /** The values, in order. */
  declare readonly values: readonly unknown[];

  /** @internal */
  constructor(run: Run, text: string, values: readonly unknown[], options: RunOptions & PageOptions = {}) {
    this.#run = run;
    this.text = text;
    this.values = values;
    this.#options = options;
  }

  /** The same statement with other options. */
  with(options: RunOptions & PageOptions): Query<Row> {
    return new Query(this.#run, this.text, this.values, { ...this.#options, ...options });
  }

  /** Runs it, if it does not run yet. */
  run(): Promise<Result<Row>> {
    const { prefetch, ...options } = this.#options;
    return (this.#running ??= this.#run(this.text, this.values, options));
  }

  then<A = Result<Row>, B = never>(
    resolved?: ((result: Result<Row>) => A | PromiseLike<A>) | null,
    rejected?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.run().then(resolved, rejected);
  }

  catch<B = never>(rejected?: ((error: unknown) => B | PromiseLike<B>) | null): Promise<Result<Row> | B> {
    return this.run().catch(rejected);
  }

  finally(settled?: (() => void) | null): Promise<Result<Row>> {
    return this.run().finally(settled);
  }

  /** The first row; null if there is none. */
  async one(): Promise<Row | null> {
    return (await this.run()).first;
  }

  /** One column of the page, without making rows; see {@link Result.column}. */
  async column<Column extends ColumnValues = ColumnValues>(name: string): Promise<Column> {
    return (await this.run()).column<Column>(name);
  }

  /** Every page. While one is in use, `prefetch` more (1 by default) are on their way, and no further ones. */
  pages(pageSize = this.#options.pageSize, options: PageOptions = {}): AsyncIterableIterator<Result<Row>> {
    return pages((rest) => this.#run(this.text, this.values, rest), { ...this.#options, pageSize, ...options });
  }

  /** Every row of every page. */
  async *[Symbol.asyncIterator](): AsyncIterableIterator<Row> {
    for await (const page of this.pages()) yield* page;
  }
}

const texts = new WeakMap<TemplateStringsArray, string>();

/** The text of a template, with `?` where its values stand. Refuses what is no template. */
export function templateText(strings: unknown, values: readonly unknown[], name: string): string {
  if (!isTemplate(strings)) {
    throw new CqlError(
      "usage",
      `db.${name} is a tag: write db.${name}\`SELECT .. WHERE id = \${id}\` without parentheses, and every value is bound. ` +
        "For a text that is put together at run time use db.execute(text, values).",
    );
  }
  for (const value of values) {
    if (value instanceof Query) {
      throw new CqlError("usage", "a statement cannot stand in another one: a template binds values and never splices text");
    }
  }
  let text = texts.get(strings);
  if (text === undefined) texts.set(strings, (text = strings.join("?")));
  return text;
}

function isTemplate(strings: unknown): strings is TemplateStringsArray {
  return Array.isArray(strings) && Object.hasOwn(strings, "raw") && Object.isFrozen(strings);
}
