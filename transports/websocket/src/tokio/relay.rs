//! Where a relay is and how it is spoken to.

use core::fmt;
use std::string::{String, ToString};
use std::sync::Arc;

use messina_core::error::{ConfigProblem, Error, ErrorKind};
use tokio_tungstenite::tungstenite::http::Uri;

use crate::protocol::Protocol;

/// A relay.
#[derive(Clone)]
pub struct Relay {
    pub(super) uri: Uri,
    pub(super) protocol: Protocol,
    pub(super) token: Option<Token>,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<messina_tokio::TlsOptions>,
}

pub(super) type Token = Arc<dyn Fn() -> String + Send + Sync>;

impl Relay {
    /// The relay at a `ws://` or `wss://` address; `/cql` is the path if none is written. Fails when
    /// this is no such address.
    pub fn new(url: &str) -> Result<Self, Error> {
        let uri: Uri = url.parse().map_err(|error| unusable(&error))?;
        let is_known = matches!(uri.scheme_str(), Some("ws" | "wss"));
        if !is_known || uri.host().is_none_or(str::is_empty) {
            return Err(unusable(&"not ws://host/path or wss://host/path"));
        }
        Ok(Self {
            uri,
            protocol: Protocol::default(),
            token: None,
            #[cfg(feature = "tls")]
            tls: None,
        })
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

    /// Shows the relay a token that is asked for at each WebSocket anew, since it may be short-lived.
    /// The function is called by the driver's task and must not block.
    #[must_use]
    pub fn token_from(mut self, token: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.token = Some(Arc::new(token));
        self
    }

    /// Whom to trust for `wss://`; the public certificate authorities if it is not called and the
    /// feature `webpki-roots` is on.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, options: messina_tokio::TlsOptions) -> Self {
        self.tls = Some(options);
        self
    }

    pub(super) const fn chosen_protocol(&self) -> Protocol {
        self.protocol
    }

    /// Whether it may be an endpoint that knows nothing of sub-protocols.
    pub(super) fn may_be_foreign(&self) -> bool {
        self.protocol == Protocol::Cql && self.token.is_none()
    }

    pub(super) fn is_secure(&self) -> bool {
        self.uri.scheme_str() == Some("wss")
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("uri", &self.uri)
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}

#[cold]
pub(super) fn unusable(what: &dyn fmt::Display) -> Error {
    Error::with_text(ErrorKind::Config(ConfigProblem::Relay), what.to_string())
}
