//! A session through a relay, on tokio.
//!
//! ```no_run
//! # async fn example() -> Result<(), messina_tokio::Error> {
//! use messina_tokio::Config;
//! use messina_websocket::tokio::{Relay, connect};
//!
//! let mut config = Config::server();
//! config.add_contact_points("node1.internal:9042")?;
//! let relay = Relay::new("ws://127.0.0.1:8080/cql")?.token("eyJhbGciOi..");
//! let session = connect(config, relay).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Contact points and the addresses that nodes tell of are the relay's to resolve and to allow.

mod link;
mod relay;
mod transport;

use messina_core::config::Config;
use messina_core::drive::Session;
use messina_core::error::Error;

pub use crate::protocol::Protocol;
pub use link::WebSocketLink;
pub use relay::Relay;
pub use transport::WebSocketTransport;

/// Connects through a relay: makes a session, spawns its tasks on the current runtime and waits
/// until it can be used.
///
/// Fails as `messina_tokio::connect` does, and when the relay's settings cannot be used. What a
/// relay says when it refuses or closes is part of the error's text.
pub async fn connect(config: Config, relay: Relay) -> Result<Session, Error> {
    let protocol = relay.chosen_protocol();
    let transport = WebSocketTransport::new(relay)?;
    match protocol {
        Protocol::Cql => messina_tokio::connect_through(config, transport).await,
        Protocol::Mux => {
            let (mux, pump) = transport.into_mux();
            ::tokio::spawn(pump);
            messina_tokio::connect_through(config, mux).await
        }
    }
}
