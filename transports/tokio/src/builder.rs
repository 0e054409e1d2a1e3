//! A session in three lines.

use core::time::Duration;
use std::sync::Arc;

use messina_core::cluster::WarmStart;
use messina_core::config::Config;
use messina_core::conn::auth::PlainAuthenticator;
use messina_core::drive::Session;
use messina_core::error::Error;

use crate::spawn::connect;

/// Gathers the settings of a session. Everything else can be set on [`Builder::config`].
#[derive(Clone, Debug)]
pub struct Builder {
    config: Config,
    problem: Option<Error>,
    #[cfg(feature = "tls")]
    tls: Option<crate::TlsOptions>,
}

/// Settings with the defaults for servers.
pub fn builder() -> Builder {
    Builder {
        config: Config::server(),
        problem: None,
        #[cfg(feature = "tls")]
        tls: None,
    }
}

impl Builder {
    /// Adds contact points: `host`, `host:port`, a comma separates several.
    #[must_use]
    pub fn contact(mut self, points: &str) -> Self {
        if let Err(problem) = self.config.add_contact_points(points) {
            self.problem.get_or_insert(problem);
        }
        self
    }

    /// Authenticates with a user and password.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.config.authenticator = Some(Arc::new(PlainAuthenticator::new(user, password)));
        self
    }

    /// Sets the keyspace of unqualified names.
    #[must_use]
    pub fn keyspace(mut self, keyspace: impl Into<String>) -> Self {
        self.config.keyspace = Some(keyspace.into());
        self
    }

    /// Keeps to the nodes of a data centre; others are contacted only where
    /// [`dc_failover`](messina_core::routing::Policy::dc_failover) allows it.
    #[must_use]
    pub fn datacenter(mut self, name: impl Into<Box<str>>) -> Self {
        self.config.policy.preferred_dc = Some(name.into());
        self
    }

    /// Begins with what an earlier session has saved: connected to all nodes and shards at once, its
    /// statements prepared, its first request routed right before anything was read. Bytes that are
    /// empty, damaged, old or of another cluster are harmless.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), Box<dyn core::error::Error>> {
    /// let saved = std::fs::read("cluster.warm").unwrap_or_default();
    /// let session = messina_tokio::builder()
    ///     .contact("10.0.0.1")
    ///     .warm_start(saved)
    ///     .connect()
    ///     .await?;
    /// // ... and at the end, or now and then, at most a megabyte:
    /// std::fs::write("cluster.warm", session.warm_start(1 << 20))?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn warm_start(mut self, saved: Vec<u8>) -> Self {
        self.config.warm_start = Some(WarmStart::new(saved));
        self
    }

    /// Sets the time limit of one request with all its attempts.
    #[must_use]
    pub const fn request_timeout(mut self, timeout: Duration) -> Self {
        self.config.timeouts.request = timeout;
        self
    }

    /// Compresses long requests, and asks nodes to compress their answers. A node that does not
    /// offer this cannot be used.
    #[cfg(any(feature = "lz4", feature = "snappy"))]
    #[must_use]
    pub const fn compression(mut self, compression: messina_core::wire::Compression) -> Self {
        self.config.compression = Some(compression);
        self
    }

    /// Encrypts every connection and verifies the nodes.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, options: crate::TlsOptions) -> Self {
        self.tls = Some(options);
        self
    }

    /// Under TLS, verifies that the nodes have certificates for this name, whatever their addresses.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls_server_name(mut self, name: &str) -> Self {
        self.config.server_name = Some(name.into());
        self
    }

    /// All other settings.
    pub const fn config(&mut self) -> &mut Config {
        &mut self.config
    }

    /// Connects; see [`connect`].
    pub async fn connect(self) -> Result<Session, Error> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        #[cfg(feature = "tls")]
        if let Some(options) = self.tls {
            return crate::connect_tls(self.config, options).await;
        }
        connect(self.config).await
    }
}
