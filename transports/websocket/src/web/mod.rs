//! A session through a relay for Rust programs that are compiled to WASM and run in a page, a worker
//! or any other host with the web's own `WebSocket`. JavaScript programs use the npm package
//! instead, which is smaller and quicker at rows.
//!
//! ```ignore
//! use messina_core::config::Config;
//! use messina_websocket::web::{Relay, connect};
//!
//! let mut config = Config::server();
//! config.add_contact_points("node1.internal:9042")?;
//! let session = connect(config, Relay::new("wss://relay.example/cql").token(token)).await?;
//! ```
//!
//! The web gives no back-pressure for what comes: with [`Protocol::Mux`] a tunnel's credit bounds
//! it, with [`Protocol::Cql`] the requests in flight do. What is sent waits while the socket holds
//! more than it should. Why a WebSocket could not be opened, hosts do not tell.

mod link;
mod time;
mod transport;

use alloc::rc::Rc;
use alloc::string::String;
use core::fmt;

use messina_core::config::Config;
use messina_core::drive::{Session, Transport, start};
use messina_core::error::Error;
use wasm_bindgen_futures::spawn_local;

pub use crate::protocol::Protocol;
pub use link::WebSocketLink;
pub use time::{WebClock, WebTimer};
pub use transport::{Connecting, WebSocketTransport};

/// A relay.
#[derive(Clone)]
pub struct Relay {
    url: String,
    protocol: Protocol,
    token: Option<Rc<dyn Fn() -> String>>,
}

impl Relay {
    /// The relay at a `ws://` or `wss://` address; `/cql` is the path if none is written.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.into(),
            protocol: Protocol::default(),
            token: None,
        }
    }

    /// Chooses the protocol; [`Protocol::Mux`] if it is not called.
    #[must_use]
    pub const fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Shows the relay this token.
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        let token = token.into();
        self.token_from(move || token.clone())
    }

    /// Shows the relay a token that is asked for at each WebSocket anew.
    #[must_use]
    pub fn token_from(mut self, token: impl Fn() -> String + 'static) -> Self {
        self.token = Some(Rc::new(token));
        self
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("url", &self.url)
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}

/// Connects through a relay: makes a session, runs its tasks on the host's event loop and waits
/// until it can be used. Fails within `Timeouts::connect` when no contact point can be used, or at
/// once when the configuration cannot work.
pub async fn connect(config: Config, relay: Relay) -> Result<Session, Error> {
    let protocol = relay.protocol;
    let transport = WebSocketTransport::new(relay);
    match protocol {
        Protocol::Cql => run(config, transport).await,
        Protocol::Mux => {
            let (mux, pump) = transport.into_mux();
            spawn_local(pump);
            run(config, mux).await
        }
    }
}

async fn run<T: Transport + 'static>(config: Config, transport: T) -> Result<Session, Error> {
    let mut random = rand_core::UnwrapErr(getrandom::SysRng);
    let (session, mut driver) = start(config, transport, &mut random)?;
    spawn_local(async move {
        while let Some(connection) = driver.next_connection().await {
            spawn_local(connection);
        }
    });
    session.ready().await?;
    Ok(session)
}
