//! From the common options to a session.

pub(crate) mod tls;

use core::num::NonZeroU16;
use core::time::Duration;
use std::sync::{Arc, PoisonError, RwLock};

use messina_core::Shared;
use messina_core::config::{Config, PoolSize, ProtocolVersions};
use messina_core::conn::auth::PlainAuthenticator;
use messina_core::drive::{Name, Session, Status};
use messina_core::error::Error;
use messina_core::wire::{Compression, Consistency, ProtocolVersion, SerialConsistency};
use messina_tokio::TlsOptions;
use uuid::Uuid;

use crate::arguments::{self, Common, Protocol};
use crate::failure::Failure;

/// Between two looks at the state of the connections.
const STATUS_PAUSE: Duration = Duration::from_millis(5);

/// A session, and what is needed to tell of it.
#[derive(Clone, Debug)]
pub(crate) struct Connected {
    pub(crate) session: Session,
    pub(crate) limits: messina_core::config::Limits,
    names: Arc<RwLock<Vec<NodeName>>>,
}

/// A node as the output names it.
#[derive(Clone, Debug)]
pub(crate) struct NodeName {
    pub(crate) index: u16,
    pub(crate) host_id: Uuid,
    pub(crate) address: core::net::SocketAddr,
}

impl Connected {
    /// Connects as the options say.
    pub(crate) async fn open(common: &Common) -> Result<Self, Failure> {
        common.log.start();
        let (config, tls) = (config(common)?, tls::options(&common.tls)?);
        let connected = Self::with_config(config, tls, &common.contact.join(",")).await?;
        match connected.missing_dc(common) {
            Some(failure) => {
                connected.session.close().await;
                Err(failure)
            }
            None => Ok(connected),
        }
    }

    /// Connects; `contacts` is for the message if it fails.
    pub(crate) async fn with_config(
        config: Config,
        tls: Option<TlsOptions>,
        contacts: &str,
    ) -> Result<Self, Failure> {
        let limits = config.limits;
        let connected = match tls {
            Some(options) => messina_tokio::connect_tls(config, options).await,
            None => messina_tokio::connect(config).await,
        };
        let session = connected.map_err(|error| Failure::of_connect(&error, contacts))?;
        Ok(Self {
            session,
            limits,
            names: Arc::default(),
        })
    }

    /// A preferred datacenter without nodes leaves no node to ask.
    fn missing_dc(&self, common: &Common) -> Option<Failure> {
        let wanted = common.dc.as_ref().filter(|_| !common.dc_failover)?;
        let status = self.session.status();
        if status.nodes.iter().any(|node| node.dc == *wanted) {
            return None;
        }
        let mut known: Vec<_> = status.nodes.iter().map(|node| node.dc.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        let message = format!(
            "no node is in datacenter {wanted:?}, there are: {}; correct --dc or add --dc-failover",
            known.join(", ")
        );
        Some(Failure::new("config", message))
    }

    /// The state of the connections once every shard has one, or when `wait` is over.
    pub(crate) async fn settled_status(&self, wait: Duration) -> Status {
        let give_up_at = tokio::time::Instant::now() + wait;
        loop {
            let status = self.session.status();
            if status.is_complete() || tokio::time::Instant::now() >= give_up_at {
                return status;
            }
            tokio::time::sleep(STATUS_PAUSE).await;
        }
    }

    /// The node of an index; asks the session again for one that was not there before.
    pub(crate) fn node(&self, index: u16) -> Option<NodeName> {
        let find = |names: &[NodeName]| names.iter().find(|name| name.index == index).cloned();
        let known = find(&self.names.read().unwrap_or_else(PoisonError::into_inner));
        if known.is_some() {
            return known;
        }
        let fresh: Vec<_> = self
            .session
            .status()
            .nodes
            .iter()
            .map(|node| NodeName {
                index: node.node.value(),
                host_id: node.host_id,
                address: node.address,
            })
            .collect();
        let found = find(&fresh);
        *self.names.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        found
    }

    /// Runs a statement that brings nothing.
    pub(crate) async fn run(&self, cql: &str) -> Result<(), Failure> {
        let ran = self.session.query(cql, ()).await;
        ran.map(|_| ()).map_err(|error| self.failure(&error))
    }

    /// What the driver says about a request, with the node's name.
    pub(crate) fn failure(&self, error: &Error) -> Failure {
        Failure::of_request(error, |index| self.node(index).map(|node| node.host_id))
    }
}

/// The configuration that the options ask for.
pub(crate) fn config(common: &Common) -> Result<Config, Failure> {
    let mut config = Config::server();
    for list in &common.contact {
        config
            .add_contact_points(list)
            .map_err(|error| Failure::usage(format!("{error}; write HOST or HOST:PORT")))?;
    }
    if config.contact_points.is_empty() {
        return Err(Failure::usage(
            "no contact point: give --contact HOST[:PORT] or set MESSINA_CONTACT",
        ));
    }
    config.authenticator = authenticator(common)?;
    config.keyspace.clone_from(&common.keyspace);
    config.consistency = level(&common.consistency, Consistency::from_name)?;
    config.serial_consistency = level(&common.serial_consistency, SerialConsistency::from_name)?;
    config.page_size = (common.page_size > 0).then_some(common.page_size);
    config.timeouts.request = Duration::from_millis(common.request_timeout);
    config.timeouts.connect = Duration::from_millis(common.connect_timeout);
    config.server_name = common.tls.tls_server_name.as_deref().map(Name::from);
    config.compression = match common.compression {
        arguments::Compression::None => None,
        arguments::Compression::Lz4 => Some(Compression::Lz4),
        arguments::Compression::Snappy => Some(Compression::Snappy),
    };
    config.protocol = match common.protocol {
        Protocol::Auto => ProtocolVersions::AUTOMATIC,
        Protocol::V4 => ProtocolVersion::V4.into(),
        Protocol::V5 => ProtocolVersion::V5.into(),
    };
    config.policy.preferred_dc = common.dc.as_deref().map(Box::from);
    config.policy.preferred_rack = common.rack.as_deref().map(Box::from);
    config.policy.dc_failover = common.dc_failover;
    config.policy.dc_failover_at_local_levels = common.dc_failover_at_local_levels;
    config.policy.tablet_leader = !common.no_tablet_leader;
    config.pool.size = pool_size(common);
    config.pool.shard_aware = !common.no_shard_aware;
    config.pool.shard_aware_port = !common.no_shard_aware_port;
    config.application_name = Some("messina-cli".to_owned());
    config.application_version = Some(env!("CARGO_PKG_VERSION").to_owned());
    Ok(config)
}

fn authenticator(
    common: &Common,
) -> Result<Option<Shared<dyn messina_core::conn::auth::Authenticator>>, Failure> {
    // A password without a user may stand in the environment for other calls.
    let Some(user) = &common.user else {
        return Ok(None);
    };
    let Some(password) = &common.password else {
        return Err(Failure::usage(
            "--user needs --password (or MESSINA_PASSWORD)",
        ));
    };
    Ok(Some(Shared::new(PlainAuthenticator::new(user, password))))
}

fn level<L>(name: &str, find: impl FnOnce(&str) -> Option<L>) -> Result<L, Failure> {
    find(name).ok_or_else(|| {
        Failure::usage(format!(
            "{name:?} is no consistency level for this; try LOCAL_QUORUM"
        ))
    })
}

fn pool_size(common: &Common) -> PoolSize {
    match (common.connections_per_host, common.connections_per_shard) {
        (Some(count), _) => PoolSize::PerHost(count),
        (None, Some(count)) => PoolSize::PerShard(count),
        (None, None) if common.no_shard_aware => PoolSize::PerHost(NonZeroU16::MIN),
        (None, None) => PoolSize::PerShard(NonZeroU16::MIN),
    }
}
