// `cassandra-driver` in shape, this package within: for programs that move over.

import * as host from "#host";
import { Client as AnyClient, type ClientOptions } from "./compat/client.js";
import { connectBy } from "./connect.js";

export type { Callback, ClientOptions, Host, Params, QueryOptions } from "./compat/client.js";
export type { Encoding } from "./compat/codecs.js";
export * as errors from "./compat/errors.js";
export * as types from "./compat/types.js";

/** A cluster, in the shape of cassandra-driver's `Client`. */
export class Client extends AnyClient {
  static override readonly name: string = "Client";

  constructor(options: ClientOptions) {
    super(options, (asked, types) => connectBy(host, asked, types));
  }
}

/** Login by user and password. */
export const auth = {
  PlainTextAuthProvider: class PlainTextAuthProvider {
    constructor(readonly username: string, readonly password: string) {}
  },
};
