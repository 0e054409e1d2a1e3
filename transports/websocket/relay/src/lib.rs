//! The server end of messina's WebSocket tunnel: clients that cannot open sockets of their own
//! (browsers, edge functions) reach the nodes of a cluster through it, and nothing else.
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
pub use tls::{TlsError, TlsIdentity};
pub use token::{Claims, SigningKey, TokenError};
