//! What a simulated cluster is made of, and the knobs that make its nodes odd.

use core::net::{IpAddr, Ipv4Addr};

/// Which tablets extensions a node offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TabletsMode {
    /// Neither.
    Off,
    /// `TABLETS_ROUTING_V1`.
    V1,
    /// `TABLETS_ROUTING_V2_EXPERIMENTAL`.
    V2,
    /// Both.
    Both,
}

impl TabletsMode {
    /// By the word of the command line.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "off" => Self::Off,
            "v1" => Self::V1,
            "v2" => Self::V2,
            "both" => Self::Both,
            _ => return None,
        })
    }

    pub(crate) fn v1(self) -> bool {
        matches!(self, Self::V1 | Self::Both)
    }

    pub(crate) fn v2(self) -> bool {
        matches!(self, Self::V2 | Self::Both)
    }
}

/// One node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeOptions {
    /// Datacenter.
    pub datacenter: String,
    /// Rack.
    pub rack: String,
    /// Shards, at least 1.
    pub shards: u32,
    /// Ignored most significant bits of the shard function.
    pub ignore_msb: u32,
    /// Tablets extensions offered.
    pub tablets: TabletsMode,
    /// No ScyllaDB key in SUPPORTED at all, and no `system_schema.scylla_*` tables.
    pub plain: bool,
    /// Whether SUPPORTED names the shard-aware port.
    pub advertise_shard_aware_port: bool,
    /// The source port that a shard-aware listener sees is not the client's.
    pub nat: bool,
    /// The shard of each new connection through the shard-aware port, whatever its source port.
    pub shard_aware_gives: Option<u32>,
    /// The same for the regular port.
    pub regular_gives: Option<u32>,
    /// A coordinator that owns no tokens.
    pub zero_token: bool,
    /// The row of this node in `system.peers` has only `peer` and `host_id`.
    pub joining: bool,
    /// Keys added to SUPPORTED, or replacing its own.
    pub supported_extra: Vec<(String, Vec<String>)>,
    /// Keys left out of SUPPORTED.
    pub supported_missing: Vec<String>,
    /// Columns that are null in this node's row of `system.peers`.
    pub peer_nulls: Vec<String>,
    /// Address that others see; by default derived from the cluster's base address.
    pub address: Option<IpAddr>,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            datacenter: "dc1".to_owned(),
            rack: "rack1".to_owned(),
            shards: 4,
            ignore_msb: 12,
            tablets: TabletsMode::V2,
            plain: false,
            advertise_shard_aware_port: true,
            nat: false,
            shard_aware_gives: None,
            regular_gives: None,
            zero_token: false,
            joining: false,
            supported_extra: Vec::new(),
            supported_missing: Vec::new(),
            peer_nulls: Vec::new(),
            address: None,
        }
    }
}

/// Name and password that AUTHENTICATE asks for.
#[derive(Clone)]
#[non_exhaustive]
pub struct Credentials {
    /// Role name.
    pub user: String,
    /// Password.
    pub password: String,
}

impl Credentials {
    /// A pair.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            user: user.into(),
            password: password.into(),
        }
    }
}

impl core::fmt::Debug for Credentials {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_struct("Credentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// A cluster. Everything it does follows from this and from what clients send.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// All host ids, tokens, tablets and schema versions derive from it.
    pub seed: u64,
    /// Cluster name.
    pub cluster_name: String,
    /// The nodes.
    pub nodes: Vec<NodeOptions>,
    /// Required login.
    pub auth: Option<Credentials>,
    /// Tablets of a new table where its keyspace does not say; none: twice the shards.
    pub tablet_count: Option<u32>,
    /// Tokens per node on the vnode ring.
    pub vnodes_per_node: u32,
    /// Address of node 0; node i has the i-th after it.
    pub base_address: IpAddr,
    /// Port of the regular listeners.
    pub port: u16,
    /// Port of the shard-aware listeners; none: there are no such listeners.
    pub shard_aware_port: Option<u16>,
    /// Port of the regular listeners that speak TLS; equal to `port` if that one does. The shell
    /// sets it.
    pub tls_port: Option<u16>,
    /// Port of the shard-aware listeners that speak TLS, named in SUPPORTED. The shell sets it.
    pub shard_aware_tls_port: Option<u16>,
    /// QUERY on a v2 connection fails where a real node fails.
    pub query_hazard: bool,
    /// Simple statements get fixed answers without touching any row, for benchmarks of clients.
    pub lean: bool,
    /// Largest frame body taken, in bytes.
    pub body_len_max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            cluster_name: "messina sim".to_owned(),
            nodes: vec![NodeOptions::default(); 3],
            auth: None,
            tablet_count: None,
            vnodes_per_node: 16,
            base_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 9042,
            shard_aware_port: Some(19042),
            tls_port: None,
            shard_aware_tls_port: None,
            query_hazard: true,
            lean: false,
            body_len_max: 48 << 20,
        }
    }
}

impl Options {
    /// `nodes` equal nodes of `shards` shards in one datacenter, each on a rack of its own up to
    /// three racks.
    pub fn uniform(nodes: usize, shards: u32) -> Self {
        let nodes = (0..nodes)
            .map(|at| NodeOptions {
                shards: shards.max(1),
                rack: format!("rack{}", at % 3 + 1),
                ..NodeOptions::default()
            })
            .collect();
        Self {
            nodes,
            ..Self::default()
        }
    }

    /// The same with every node offering `mode`.
    #[must_use]
    pub fn with_tablets(mut self, mode: TabletsMode) -> Self {
        for node in &mut self.nodes {
            node.tablets = mode;
        }
        self
    }

    /// The same without any ScyllaDB key.
    #[must_use]
    pub fn with_plain(mut self) -> Self {
        for node in &mut self.nodes {
            node.plain = true;
            node.tablets = TabletsMode::Off;
        }
        self
    }

    /// The address of a node.
    pub fn address(&self, node: usize) -> IpAddr {
        if let Some(address) = self.nodes.get(node).and_then(|node| node.address) {
            return address;
        }
        match self.base_address {
            IpAddr::V4(base) => {
                let offset = u32::try_from(node).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(base).wrapping_add(offset)))
            }
            IpAddr::V6(base) => {
                let offset = node as u128;
                IpAddr::V6(u128::from(base).wrapping_add(offset).into())
            }
        }
    }
}
