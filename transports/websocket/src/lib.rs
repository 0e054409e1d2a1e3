//! messina through a WebSocket, for places that cannot open a socket of their own.
//!
//! A relay stands near the cluster and joins WebSockets to the nodes. Two sub-protocols are spoken:
//!
//! | sub-protocol | what the binary messages hold |
//! |---|---|
//! | [`CQL`] | the byte stream of one connection, as any CQL-over-WebSocket endpoint takes it |
//! | [`CQL_MUX`] | a [`tunnel`]: any number of connections over one WebSocket, with flow control for each |
//!
//! In both, messages may be joined and split at will: their borders mean nothing. A text message is
//! a protocol error.
//!
//! | module | what it is |
//! |---|---|
//! | [`tunnel`] | the pure state of one end of a tunnel: bytes in, bytes out; used by all ends |
//! | [`mux`] | core's `Transport` through a tunnel, over one link of any other transport |
//! | `tokio` | feature `tokio`: a session through a relay, by tokio-tungstenite |
//! | `web` | feature `web`, on WASM: a session through a relay for Rust programs in a browser, by web-sys |
//!
//! Features: `std` (locks for machines with threads), `tokio`, `tls` (`wss://` on tokio, by rustls),
//! `webpki-roots` (the public certificate authorities for it) and `web`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(any(feature = "tokio", all(feature = "web", target_family = "wasm")))]
mod answer;
pub mod mux;
#[cfg(any(feature = "tokio", all(feature = "web", target_family = "wasm")))]
mod protocol;
mod sync;
#[cfg(feature = "tokio")]
pub mod tokio;
pub mod tunnel;
#[cfg(all(feature = "web", target_family = "wasm"))]
pub mod web;

/// Sub-protocol: one connection, plain bytes.
pub const CQL: &str = "cql";

/// Sub-protocol: many connections, framed by [`tunnel`].
pub const CQL_MUX: &str = "cql.mux.v1";

/// An entry of the sub-protocol list with this prefix holds the caller's token, base64url without
/// padding. Relays never echo it.
pub const TOKEN_PREFIX: &str = "token.";
