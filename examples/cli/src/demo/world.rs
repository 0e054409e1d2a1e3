//! Where the demonstration takes place: a simulated cluster inside this process, or a real one.

use messina_core::config::Config;
use messina_sim::node::{Counters, Options, Replica, Tablet};
use messina_sim::tcp::{self, SimHandle, SimServer};
use messina_tokio::TlsOptions;

use super::DemoArguments;
use crate::arguments::Common;
use crate::connect::tls::unusable;
use crate::connect::{self, Connected};
use crate::failure::Failure;

/// The cluster.
#[derive(Debug)]
pub(super) enum World {
    /// Its nodes can be asked what they have counted, and told to move things.
    Embedded {
        server: SimServer,
        nodes: u16,
        shards: u32,
        seed: u64,
    },
    /// Only what the driver says is known.
    Real { contacts: String },
}

impl World {
    pub(super) async fn start(arguments: &DemoArguments) -> Result<Self, Failure> {
        if !arguments.common.contact.is_empty() {
            let contacts = arguments.common.contact.join(",");
            return Ok(Self::Real { contacts });
        }
        let mut options = Options::uniform(usize::from(arguments.nodes), arguments.shards);
        (options.port, options.shard_aware_port) = (0, Some(0));
        options.seed = arguments.seed;
        let started = if arguments.common.tls.is_wanted() {
            SimServer::start_tls(options, tcp::TlsOptions::made()).await
        } else {
            SimServer::start(options).await
        };
        let server =
            started.map_err(|error| Failure::io("cannot start the simulated cluster", &error))?;
        Ok(Self::Embedded {
            server,
            nodes: arguments.nodes,
            shards: arguments.shards,
            seed: arguments.seed,
        })
    }

    pub(super) async fn connect(&self, common: &Common) -> Result<Connected, Failure> {
        let mut common = common.clone();
        if let Self::Embedded { server, .. } = self {
            common.contact = server.contacts().iter().map(ToString::to_string).collect();
        }
        let config: Config = connect::config(&common)?;
        let tls = match self.ca_pem() {
            Some(pem) => Some(TlsOptions::with_ca_pem(pem).map_err(unusable)?),
            None => connect::tls::options(&common.tls)?,
        };
        Connected::with_config(config, tls, &common.contact.join(",")).await
    }

    /// The authority of the simulated nodes, if they speak TLS.
    fn ca_pem(&self) -> Option<&str> {
        match self {
            Self::Embedded { server, .. } => server.ca_pem(),
            Self::Real { .. } => None,
        }
    }

    pub(super) async fn stop(self) {
        if let Self::Embedded { server, .. } = self {
            server.stop().await;
        }
    }

    pub(super) const fn is_embedded(&self) -> bool {
        matches!(self, Self::Embedded { .. })
    }

    /// One line about it.
    pub(super) fn title(&self) -> String {
        match self {
            Self::Embedded {
                nodes,
                shards,
                seed,
                ..
            } => format!(
                "a simulated cluster in this process: {nodes} nodes × {shards} shards, seed {seed}"
            ),
            Self::Real { contacts } => format!("the cluster at {contacts}"),
        }
    }

    /// The nodes, if they are simulated.
    pub(super) fn nodes(&self) -> Option<Nodes> {
        match self {
            Self::Embedded { server, shards, .. } => Some(Nodes {
                handle: server.handle(),
                shards: *shards,
            }),
            Self::Real { .. } => None,
        }
    }
}

/// The simulated nodes, to be asked and to be changed.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    handle: SimHandle,
    shards: u32,
}

impl Nodes {
    /// What all nodes have counted for a table, named `keyspace.table`.
    pub(super) fn counted(&self, table: &str) -> Counters {
        self.handle.stats().table(table)
    }

    /// Open connections of clients.
    pub(super) fn connections(&self) -> usize {
        self.handle.with(|cluster| {
            let nodes = 0..cluster.node_count();
            nodes.map(|node| cluster.connection_count(node)).sum()
        })
    }

    pub(super) fn tablet_of(&self, (keyspace, table): (&str, &str), token: i64) -> Option<usize> {
        self.handle
            .with(|cluster| cluster.tablet_of(keyspace, table, token))
    }

    pub(super) fn tablet_count(&self, (keyspace, table): (&str, &str)) -> usize {
        self.handle
            .with(|cluster| cluster.tablets(keyspace, table).len())
    }

    /// Moves the first replica of a tablet to a node without one or, where there is none, to
    /// another shard. Says from where to where; `None` if there is no other place.
    pub(super) fn move_tablet(
        &self,
        (keyspace, table): (&str, &str),
        tablet: usize,
    ) -> Result<Option<(Replica, Replica)>, Failure> {
        let shards = self.shards;
        self.handle.with(|cluster| {
            let Some(Tablet { replicas, .. }) =
                cluster.tablets(keyspace, table).into_iter().nth(tablet)
            else {
                return Ok(None);
            };
            let Some(from) = replicas.first().copied() else {
                return Ok(None);
            };
            let holds = |node: usize| replicas.iter().any(|replica| replica.node == node);
            let free = (0..cluster.node_count()).find(|node| !holds(*node));
            let to = match free {
                Some(node) => Replica {
                    node,
                    shard: from.shard,
                },
                None if shards > 1 => Replica {
                    node: from.node,
                    shard: (from.shard + 1) % shards,
                },
                None => return Ok(None),
            };
            cluster
                .move_tablet((keyspace, table), tablet, from, to)
                .map(|()| Some((from, to)))
                .map_err(|error| Failure::new("bug", error.0))
        })
    }

    /// Makes the next replica of a tablet its leader. Says which node led and which leads; `None`
    /// if there is no other replica.
    pub(super) fn move_leader(
        &self,
        (keyspace, table): (&str, &str),
        tablet: usize,
    ) -> Result<Option<(usize, usize)>, Failure> {
        self.handle.with(|cluster| {
            let found = cluster.tablets(keyspace, table).into_iter().nth(tablet);
            let Some((replicas, leader)) =
                found.and_then(|tablet| Some((tablet.replicas, tablet.leader?)))
            else {
                return Ok(None);
            };
            let next = (leader + 1) % replicas.len().max(1);
            if next == leader {
                return Ok(None);
            }
            cluster
                .set_leader((keyspace, table), tablet, Some(next))
                .map(|()| Some((replicas[leader].node, replicas[next].node)))
                .map_err(|error| Failure::new("bug", error.0))
        })
    }
}
