//! The server end of messina's WebSocket tunnel: clients that cannot open sockets of their own
//! (browsers, edge functions) reach the nodes of a cluster through it, and nothing else.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use messina_relay::{Access, Relay, RelayConfig, Rule, SigningKey};
//!
//! let mut config = RelayConfig::new("127.0.0.1:8080".parse()?);
//! config.allow.push(Rule::parse("db.example:9042,19042")?);
//! config.allow.push(Rule::parse("10.20.0.0/16:9042,19042")?);
//! let key = SigningKey::new(&std::fs::read("relay.key")?).ok_or("a key has 32 bytes or more")?;
//! config.access = Access::new().signing_key(key).origin("https://shop.example");
//! Relay::bind(config).await?.run(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```
//!
//! `messina relay` is the same as a command.
//!
//! # Running it safely
//!
//! A relay is a door into a network. What it does on its own, and what is left to you:
//!
//! 1. **Allow as little as there is.** Nothing is allowed unless a [`Rule`] says so. Name the
//!    cluster's network with its ports (`10.20.0.0/16:9042,19042`), or give each node an alias
//!    (`node1=10.20.0.5:9042`). A rule for a name lets it lead to public addresses only. Loopback,
//!    private, link-local, carrier's, multicast and reserved addresses, metadata services, and IPv4
//!    inside IPv6 are let through only by a rule whose network lies within their own block:
//!    `0.0.0.0/0` lets nobody inside. Each look-up is checked as a whole, then dialled as checked.
//! 2. **Let in only whom you know.** Give servers a bearer token; give browsers signed ones that live
//!    for minutes, made by your application's own server once its user has logged in: a JSON Web
//!    Token under HS256 with `exp`, and as you like `sub` (limits and the audit count by it),
//!    `targets` (aliases, `name:port`, `network:port`) and `connections`. They travel in the
//!    sub-protocol list as `token.` and their base64url, never in the URL. An expired token opens no
//!    more channels; what is open goes on.
//! 3. **List origins.** That keeps pages of others out, and only pages: see [`Access::origin`].
//! 4. **Keep the database's password out of browsers.** With [`RelayConfig::login`] the relay logs in
//!    to the nodes. Whoever has a token then has this user's rights: make a role that can do what
//!    pages must and no more, and remember that any CQL it may run, a page may run.
//! 5. **Encrypt.** [`RelayConfig::tls`], or a proxy in front that speaks TLS. Such a proxy must pass
//!    `Upgrade` on and should not delay acknowledgements; all clients then have its address, so
//!    the limit for one address is the limit for all.
//!    On the other side, [`RelayConfig::node_tls`] speaks TLS with the nodes; without it the password
//!    of a login goes to them in the clear.
//! 6. **Watch.** The metrics' listener has no login: keep it inside. The audit is one line for each
//!    connection and channel, by `tracing` under the target `messina_relay::audit`, without tokens
//!    and without anything that was sent.
//!
//! # What it holds
//!
//! One task for each WebSocket; an idle one costs about 25 kB with its channel
//! (`cargo test -p messina-cli --test relay`). Of a channel at most [`Limits::window`] bytes wait for
//! the node in the tunnel, as many again on their way into its socket, and 32 KiB for the client;
//! of a WebSocket at most twice [`Limits::output_max`] wait for the client. Who does not read is not
//! read for. Clients' messages have at most [`Limits::message_len_max`] bytes.
//!
//! # What clients hear
//!
//! Before the upgrade a status of HTTP with a line of text: 401 token, 403 origin or target, 429
//! too many, 503 full or stopping. In the form `cql.mux.v1` each channel ends with a
//! [`Reason`](messina_websocket::tunnel::Reason) and a text. The WebSocket itself closes with 1000 (the
//! node has finished), 1003 (text), 1009 (message too large), 1012 (the relay stops), 4100 (rules of the
//! tunnel broken), and in the form `cql` with 4000 plus the number of the `Reason`.
#![forbid(unsafe_code)]

mod access;
mod allow;
mod audit;
mod blocks;
mod carrier;
mod channel;
mod cql;
mod dial;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
mod limits;
mod login;
mod metrics;
mod monitor;
mod server;
mod session;
mod socket;
mod target;
mod tls;
mod token;

pub use access::Access;
pub use allow::{AllowList, Rule, RuleError};
pub use dial::{Resolver, Resolving, SystemResolver};
pub use limits::Limits;
pub use login::Credentials;
pub use server::{Drained, Relay, RelayConfig};
pub use target::TargetError;
pub use tls::{NodeTls, TlsError, TlsIdentity};
pub use token::{Claims, SigningKey, TokenError};
