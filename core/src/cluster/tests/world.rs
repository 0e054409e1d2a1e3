//! The imagined cluster and the clock.

use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU16;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use uuid::Uuid;

use super::answers::{self, Cell};
use crate::cluster::{Assignment, ConnectionId, Engine, Input, Output, QuestionId, SettleId};
use crate::config::Config;
use crate::conn::extensions::{Agreed, Offer, ShardAwarePorts, Sharding, TabletsRouting};
use crate::conn::{Answer, Body};
use crate::error::{Error, ErrorKind, LinkError, LinkErrorKind, TimeoutKind};
use crate::routing::{NodeIdx, ShardIdx, ShardMap, View};
use crate::sync::Shared;
use crate::target::{Endpoint, Resolved, Security, Steering, SteeringKind, Target};
use crate::time::Instant;
use crate::wire::{Opcode, ProtocolVersion};

/// A node as the scenario wants it.
#[derive(Clone)]
pub(in crate::cluster) struct FakeNode {
    pub(in crate::cluster) ip: IpAddr,
    pub(in crate::cluster) host_id: u128,
    pub(in crate::cluster) shards: Option<u16>,
    pub(in crate::cluster) shard_aware_port: Option<u16>,
    pub(in crate::cluster) behaviour: Behaviour,
    /// The address in its system.local, if not the one where it is.
    pub(in crate::cluster) calls_itself: Option<IpAddr>,
    pub(in crate::cluster) tls_port: Option<u16>,
    pub(in crate::cluster) is_sharding_invalid: bool,
    pub(in crate::cluster) has_keyspaces: bool,
    pub(in crate::cluster) shard_port_refuses: bool,
    /// The shard that the shard-aware port gives whatever the source port.
    pub(in crate::cluster) shard_port_always: Option<u16>,
    /// The same for the normal port; otherwise round-robin.
    pub(in crate::cluster) normal_port_always: Option<u16>,
    pub(in crate::cluster) next_shard: u16,
    pub(in crate::cluster) tokens: Cell,
    pub(in crate::cluster) dc: &'static str,
    pub(in crate::cluster) schema_version: u128,
    /// Rows of system.peers instead of those of the other nodes.
    pub(in crate::cluster) peers: Option<Vec<Vec<Cell>>>,
    pub(in crate::cluster) connects: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::cluster) enum Behaviour {
    Good,
    Refuses,
    /// Nobody answers on the network.
    Silent,
    /// Connects, but questions get no answer.
    Mute,
    /// Our own requests fill its connections.
    Full,
    /// Refuses the password.
    BadPassword,
    /// Opens and ends every connection at once.
    Drops,
}

pub(in crate::cluster) struct Conn {
    pub(in crate::cluster) node: usize,
    pub(in crate::cluster) opened: bool,
    pub(in crate::cluster) shard: Option<u16>,
    pub(in crate::cluster) registered: bool,
}

pub(in crate::cluster) struct World {
    pub(in crate::cluster) engine: Engine,
    pub(in crate::cluster) now: Instant,
    pub(in crate::cluster) nodes: Vec<FakeNode>,
    pub(in crate::cluster) conns: BTreeMap<ConnectionId, Conn>,
    /// Attempts under way, and how many there may be.
    dialing: BTreeSet<ConnectionId>,
    connecting_max: usize,
    pub(in crate::cluster) names: BTreeMap<String, Vec<IpAddr>>,
    pub(in crate::cluster) keyspaces: Vec<&'static str>,
    pub(in crate::cluster) tablets: bool,
    pub(in crate::cluster) table_id: u128,
    pub(in crate::cluster) scylla: bool,
    /// Whether a ScyllaDB node has the tables that only ScyllaDB has.
    pub(in crate::cluster) scylla_tables: bool,
    pub(in crate::cluster) busy_ports: Option<u16>,
    /// Rows of system.client_routes; without them there is no such table.
    pub(in crate::cluster) routes: Option<Vec<Vec<Cell>>>,
    /// The nodes behind the ports of proxies.
    pub(in crate::cluster) proxies: BTreeMap<(&'static str, u16), usize>,
    /// Nodes do not know the event about client routes.
    pub(in crate::cluster) refuses_route_events: bool,
    pub(in crate::cluster) view: Option<Shared<View>>,
    pub(in crate::cluster) views: usize,
    pub(in crate::cluster) assigned: Vec<Assignment>,
    pub(in crate::cluster) ready: usize,
    pub(in crate::cluster) failed: Option<Error>,
    pub(in crate::cluster) settled: Vec<(SettleId, bool, Instant)>,
    pub(in crate::cluster) warnings: Vec<String>,
    pub(in crate::cluster) statements: Vec<String>,
    /// Questions that found no room.
    pub(in crate::cluster) refused: usize,
    pub(in crate::cluster) connects: Vec<(Instant, Endpoint, Steering)>,
    pending: BTreeMap<(Instant, u32), Pending>,
    sequence: u32,
    page: usize,
}

#[expect(clippy::large_enum_variant, reason = "only a test")]
enum Pending {
    Input(Input),
    /// An answer that counts only if the connection is still there.
    Answer(ConnectionId, QuestionId, Result<Answer, Error>),
    Opened(ConnectionId),
}

pub(in crate::cluster) fn node(n: u8) -> FakeNode {
    FakeNode {
        ip: IpAddr::from([10, 0, 0, n]),
        host_id: u128::from(n),
        shards: Some(4),
        shard_aware_port: Some(19042),
        behaviour: Behaviour::Good,
        calls_itself: None,
        tls_port: None,
        is_sharding_invalid: false,
        has_keyspaces: true,
        shard_port_refuses: false,
        shard_port_always: None,
        normal_port_always: None,
        next_shard: 0,
        tokens: answers::texts(1, &[&format!("{}", i64::from(n) * 1000)]),
        dc: "dc1",
        schema_version: 7,
        peers: None,
        connects: 0,
    }
}

pub(in crate::cluster) fn config(points: &str) -> Config {
    let mut config = Config::server();
    config.add_contact_points(points).unwrap();
    config
}

impl World {
    pub(in crate::cluster) fn new(nodes: Vec<FakeNode>, config: Config) -> Self {
        Self::steered(nodes, config, SteeringKind::ExactPort, 1)
    }

    pub(in crate::cluster) fn steered(
        nodes: Vec<FakeNode>,
        config: Config,
        steering: SteeringKind,
        seed: u64,
    ) -> Self {
        Self::any(nodes, config, steering, Security::Plain, seed)
    }

    pub(in crate::cluster) fn secured(nodes: Vec<FakeNode>, config: Config) -> Self {
        Self::any(nodes, config, SteeringKind::ExactPort, Security::Tls, 1)
    }

    fn any(
        nodes: Vec<FakeNode>,
        mut config: Config,
        steering: SteeringKind,
        security: Security,
        seed: u64,
    ) -> Self {
        let now = Instant::from_micros(1_000_000);
        let connecting_max = config.limits.connecting;
        let warm_start = config.warm_start.take();
        let config = Shared::new(config);
        let engine = Engine::with_warm_start(config, steering, security, seed, now, warm_start);
        Self {
            engine,
            now,
            nodes,
            conns: BTreeMap::new(),
            dialing: BTreeSet::new(),
            connecting_max,
            names: BTreeMap::new(),
            keyspaces: vec!["ks"],
            tablets: true,
            table_id: 99,
            scylla: true,
            scylla_tables: true,
            busy_ports: None,
            routes: None,
            proxies: BTreeMap::new(),
            refuses_route_events: false,
            view: None,
            views: 0,
            assigned: Vec::new(),
            ready: 0,
            failed: None,
            settled: Vec::new(),
            warnings: Vec::new(),
            statements: Vec::new(),
            refused: 0,
            connects: Vec::new(),
            pending: BTreeMap::new(),
            sequence: 0,
            page: usize::MAX,
        }
    }

    pub(in crate::cluster) fn with_pages_of(mut self, page: usize) -> Self {
        self.page = page;
        self
    }

    /// Lets time pass.
    pub(in crate::cluster) fn run_for(&mut self, duration: Duration) {
        let end = self.now.saturating_add(duration);
        let mut steps = 0;
        loop {
            self.take_outputs();
            steps += 1;
            assert!(steps < 200_000, "the engine does not come to rest");
            let next = self.pending.keys().next().map(|(at, _)| *at);
            let timeout = self.engine.poll_timeout();
            assert!(
                timeout.is_none_or(|at| at > self.now),
                "a deadline in the past"
            );
            match (next, timeout) {
                (Some(at), timeout) if at <= end && timeout.is_none_or(|t| at <= t) => {
                    self.now = self.now.max(at);
                    let key = *self.pending.keys().next().unwrap();
                    let pending = self.pending.remove(&key).unwrap();
                    self.deliver(pending);
                }
                (_, Some(at)) if at <= end => {
                    self.now = at;
                    self.engine.handle_timeout(at);
                }
                _ => break,
            }
        }
        self.now = end;
    }

    pub(in crate::cluster) fn run_secs(&mut self, secs: u64) {
        self.run_for(Duration::from_secs(secs));
    }

    pub(in crate::cluster) fn input(&mut self, input: Input) {
        if let Input::ConnectFailed { id, .. } | Input::Connected { id, .. } = &input {
            self.dialing.remove(id);
        }
        self.engine.handle(self.now, input);
        self.take_outputs();
    }

    pub(in crate::cluster) fn event(&mut self, on: ConnectionId, body: &[u8]) {
        let body = Body::from_slice(body);
        self.input(Input::Event { id: on, body });
    }

    /// Ends all connections to a node, as when its process stops.
    pub(in crate::cluster) fn cut(&mut self, node: usize) {
        let ids: Vec<ConnectionId> = self
            .conns
            .iter()
            .filter(|(_, conn)| conn.node == node && conn.opened)
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.cut_one(id);
        }
    }

    pub(in crate::cluster) fn cut_one(&mut self, id: ConnectionId) {
        self.conns.remove(&id);
        let error = LinkError::CLOSED_BY_PEER.into();
        self.input(Input::Closed { id, error });
    }

    /// The connection that hears events now.
    pub(in crate::cluster) fn control(&self) -> ConnectionId {
        let registered = |(_, conn): &(&ConnectionId, &Conn)| conn.registered && conn.opened;
        *self
            .conns
            .iter()
            .rfind(registered)
            .expect("a control connection")
            .0
    }

    pub(in crate::cluster) fn idx(&self, host_id: u128) -> NodeIdx {
        let view = self.view.as_ref().expect("a view");
        let id = Uuid::from_u128(host_id);
        view.topology().node_by_host_id(id).expect("a known host")
    }

    pub(in crate::cluster) fn is_up(&self, host_id: u128) -> bool {
        let idx = self.idx(host_id);
        self.view
            .as_ref()
            .unwrap()
            .topology()
            .node(idx)
            .unwrap()
            .is_up()
    }

    /// Shards that serve a node, sorted.
    pub(in crate::cluster) fn shards(&self, host_id: u128) -> Vec<u16> {
        let idx = self.idx(host_id);
        let assignment = self
            .assigned
            .iter()
            .find(|assignment| assignment.node == idx);
        let mut shards: Vec<u16> = assignment
            .into_iter()
            .flat_map(|assignment| &assignment.connections)
            .map(|(_, shard)| shard.map_or(u16::MAX, ShardIdx::value))
            .collect();
        shards.sort_unstable();
        shards
    }

    pub(in crate::cluster) fn open_to(&self, node: usize) -> usize {
        let open = |conn: &&Conn| conn.node == node && conn.opened;
        self.conns.values().filter(open).count()
    }

    pub(in crate::cluster) fn count_statements(&self, part: &str) -> usize {
        self.statements
            .iter()
            .filter(|text| text.contains(part))
            .count()
    }

    fn later(&mut self, delay: Duration, pending: Pending) {
        self.sequence += 1;
        let at = self.now.saturating_add(delay);
        self.pending.insert((at, self.sequence), pending);
    }

    pub(in crate::cluster) fn take_outputs(&mut self) {
        self.take_each_output();
        let connecting = self.dialing.len();
        assert!(connecting <= self.connecting_max, "{connecting} at once");
    }

    fn take_each_output(&mut self) {
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Resolve { id, name } => {
                    let result = match self.names.get(&*name) {
                        Some(addrs) => Ok(Resolved::Addrs(addrs.iter().copied().collect())),
                        None => Err(LinkError::new(LinkErrorKind::Resolve)),
                    };
                    self.later(LATENCY, Pending::Input(Input::Resolved { id, result }));
                }
                Output::Connect {
                    id, target, events, ..
                } => {
                    self.dialing.insert(id);
                    self.connect(id, target, events);
                }
                Output::Close { id, .. } => {
                    assert!(!self.is_assigned(id), "closed while it is assigned");
                    self.dialing.remove(&id);
                    self.conns.remove(&id);
                }
                Output::Ask {
                    id,
                    on,
                    opcode,
                    body,
                } => self.ask(id, on, opcode, &body),
                Output::Publish(view) => {
                    self.view = Some(view);
                    self.views += 1;
                }
                Output::Assign(assigned) => {
                    assert!(assigned.is_sorted_by_key(|assignment| assignment.node));
                    self.assigned = assigned;
                }
                Output::Ready => self.ready += 1,
                Output::Failed(error) => self.failed = Some(error),
                Output::Settled { id, agreed } => self.settled.push((id, agreed, self.now)),
                Output::Warning(text) => self.warnings.push(text),
            }
        }
    }

    fn is_assigned(&self, id: ConnectionId) -> bool {
        self.assigned
            .iter()
            .flat_map(|assignment| &assignment.connections)
            .any(|(assigned, _)| *assigned == id)
    }

    fn connect(&mut self, id: ConnectionId, target: Target, events: &[&str]) {
        self.connects
            .push((self.now, target.endpoint.clone(), target.steering));
        let fail = |world: &mut Self, delay, error| {
            world.later(delay, Pending::Input(Input::ConnectFailed { id, error }));
        };
        let addr = match target.endpoint {
            Endpoint::Addr(addr) => addr,
            Endpoint::Name { host, port } => match self.proxies.get(&(&*host, port)) {
                Some(&node) => SocketAddr::new(self.nodes[node].ip, port),
                None => {
                    let error = LinkError::new(LinkErrorKind::Refused);
                    return fail(self, LATENCY, error.into());
                }
            },
            Endpoint::Local(_) => panic!("no local endpoint is dialed here"),
        };
        if let (Steering::Port(port), Some(free)) = (target.steering, self.busy_ports)
            && port.get() != free
        {
            return fail(self, Duration::ZERO, LinkError::PORT_IN_USE.into());
        }
        let unreachable = Error::from(LinkError::new(LinkErrorKind::Refused));
        let Some(node) = self.nodes.iter().position(|node| node.ip == addr.ip()) else {
            return fail(self, LATENCY, unreachable);
        };
        self.nodes[node].connects += 1;
        let is_shard_port = self.nodes[node].shard_aware_port == Some(addr.port());
        let refuses = is_shard_port && self.nodes[node].shard_port_refuses;
        match self.nodes[node].behaviour {
            Behaviour::Silent => {
                let delay = target.deadline.saturating_since(self.now);
                let error = Error::new(ErrorKind::Timeout(TimeoutKind::Connect));
                return fail(self, delay, error);
            }
            Behaviour::BadPassword => {
                use crate::wire::response::{ErrorCode, ServerError};
                let server = ServerError::plain(ErrorCode::BadCredentials, "wrong");
                return fail(self, LATENCY, Error::from_server(server));
            }
            Behaviour::Refuses => return fail(self, LATENCY, unreachable),
            _ if refuses => return fail(self, LATENCY, unreachable),
            _ => {}
        }
        let shard = self.land(node, addr, target.steering);
        let conn = Conn {
            node,
            opened: false,
            shard,
            registered: !events.is_empty(),
        };
        self.conns.insert(id, conn);
        self.later(LATENCY, Pending::Opened(id));
    }

    /// The shard of a new connection.
    fn land(&mut self, node: usize, addr: SocketAddr, steering: Steering) -> Option<u16> {
        let node = &mut self.nodes[node];
        let count = node.shards?;
        let ports = [node.shard_aware_port, node.tls_port];
        if ports.contains(&Some(addr.port())) {
            let by_port = match steering {
                Steering::Port(port) => port.get() % count,
                Steering::Shard { shard, .. } => shard,
                Steering::None => 0,
            };
            return Some(node.shard_port_always.unwrap_or(by_port));
        }
        let next = node.next_shard % count;
        node.next_shard = node.next_shard.wrapping_add(1);
        Some(node.normal_port_always.unwrap_or(next))
    }

    fn deliver(&mut self, pending: Pending) {
        match pending {
            Pending::Input(input) => self.input(input),
            Pending::Answer(on, id, answer) => {
                if self.conns.contains_key(&on) {
                    self.input(Input::Answered { id, answer });
                }
            }
            Pending::Opened(id) => {
                let Some(conn) = self.conns.get_mut(&id) else {
                    return;
                };
                conn.opened = true;
                let (node, shard) = (conn.node, conn.shard);
                let agreed = agreed(&self.nodes[node], shard, self.scylla);
                let source_port = None;
                self.input(Input::Connected {
                    id,
                    agreed,
                    source_port,
                });
                if self.nodes[node].behaviour == Behaviour::Drops && self.conns.contains_key(&id) {
                    self.cut_one(id);
                }
            }
        }
    }

    fn ask(&mut self, id: QuestionId, on: ConnectionId, opcode: Opcode, body: &[u8]) {
        let Some(conn) = self.conns.get_mut(&on) else {
            panic!("asked on a connection that is not there")
        };
        let node = conn.node;
        if self.nodes[node].behaviour == Behaviour::Mute {
            let error = Error::new(ErrorKind::Timeout(TimeoutKind::Request));
            let delay = Duration::from_secs(5);
            return self.later(delay, Pending::Answer(on, id, Err(error)));
        }
        if self.nodes[node].behaviour == Behaviour::Full {
            self.refused += 1;
            let error = Error::new(ErrorKind::Busy);
            return self.later(Duration::ZERO, Pending::Answer(on, id, Err(error)));
        }
        let answer = match opcode {
            Opcode::Register if body.ends_with(b"CLIENT_ROUTES_CHANGE") => {
                match self.refuses_route_events {
                    true => answers::error(0x000a, "Invalid value 'CLIENT_ROUTES_CHANGE'"),
                    false => answers::ready(),
                }
            }
            Opcode::Register => {
                conn.registered = true;
                answers::ready()
            }
            Opcode::Query => {
                let text = answers::statement(body);
                let page = body
                    .iter()
                    .rev()
                    .take(4)
                    .rev()
                    .copied()
                    .collect::<Vec<u8>>();
                self.statements.push(text.clone());
                self.answer(node, &text, page_of(&page))
            }
            other => panic!("unexpected {other}"),
        };
        self.later(LATENCY, Pending::Answer(on, id, Ok(answer)));
    }

    /// Answers a statement; later pages are asked for with a state that holds their number.
    fn answer(&self, node: usize, text: &str, page: usize) -> Answer {
        if let Some(name) = text.strip_prefix("USE ") {
            let name = name.trim_matches('"');
            return if self.keyspaces.contains(&name) && self.nodes[node].has_keyspaces {
                answers::set_keyspace(name)
            } else {
                answers::error(0x2200, &format!("Keyspace '{name}' does not exist"))
            };
        }
        let table = text
            .split("FROM ")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap();
        let Some((columns, rows)) = self.table(node, table) else {
            return answers::error(0x2200, "unconfigured table");
        };
        let wanted: Vec<&str> = match text.strip_prefix("SELECT * ") {
            Some(_) => columns.clone(),
            None => {
                let list = text.strip_prefix("SELECT ").unwrap();
                list.split(" FROM").next().unwrap().split(", ").collect()
            }
        };
        let pick = |row: &Vec<Cell>| -> Vec<Cell> {
            let cell = |name: &&str| {
                let place = columns.iter().position(|column| column == name);
                row[place.unwrap_or_else(|| panic!("{table} has no {name}"))].clone()
            };
            wanted.iter().map(cell).collect()
        };
        let all: Vec<Vec<Cell>> = rows.iter().map(pick).collect();
        let start = page.saturating_mul(self.page).min(all.len());
        let end = start.saturating_add(self.page).min(all.len());
        let state = [b'p', b'a', b'g', page as u8 + 1];
        let more = (end < all.len()).then_some(&state[..]);
        answers::rows(&wanted, &all[start..end], more)
    }

    fn table(&self, node: usize, table: &str) -> Option<(Vec<&'static str>, Vec<Vec<Cell>>)> {
        let this = &self.nodes[node];
        let own = this.calls_itself.unwrap_or(this.ip).to_string();
        let text = answers::text;
        Some(match table {
            "system.local" => (
                vec![
                    "host_id",
                    "data_center",
                    "rack",
                    "rpc_address",
                    "broadcast_address",
                    "cluster_name",
                    "partitioner",
                    "release_version",
                    "tokens",
                    "schema_version",
                ],
                vec![vec![
                    answers::uuid(this.host_id),
                    text(this.dc),
                    text("r1"),
                    answers::inet(&own),
                    answers::inet(&own),
                    text("Test Cluster"),
                    text("org.apache.cassandra.dht.Murmur3Partitioner"),
                    text("3.0.8"),
                    this.tokens.clone(),
                    answers::uuid(this.schema_version),
                ]],
            ),
            "system.peers" => {
                let others = self.nodes.iter().enumerate().filter(|(n, _)| *n != node);
                let rows = others.map(|(_, other)| peer_row(other)).collect();
                (PEER_COLUMNS.to_vec(), this.peers.clone().unwrap_or(rows))
            }
            "system.client_routes" => (
                vec!["connection_id", "host_id", "address", "port", "tls_port"],
                self.routes.clone()?,
            ),
            "system_schema.keyspaces" => (
                vec!["keyspace_name", "replication"],
                self.keyspaces
                    .iter()
                    .map(|name| {
                        let class = "org.apache.cassandra.locator.NetworkTopologyStrategy";
                        let replication = answers::texts(2, &["class", class, "dc1", "3"]);
                        vec![text(name), replication]
                    })
                    .collect(),
            ),
            "system_schema.scylla_keyspaces" if self.scylla_tables => (
                vec![
                    "keyspace_name",
                    "storage_type",
                    "consistency",
                    "initial_tablets",
                ],
                self.keyspaces
                    .iter()
                    .filter(|_| self.tablets)
                    .map(|name| vec![text(name), None, text("global"), answers::int(0)])
                    .collect(),
            ),
            "system_schema.tables" => (
                vec!["keyspace_name", "table_name", "id"],
                self.keyspaces
                    .iter()
                    .map(|name| vec![text(name), text("t"), answers::uuid(self.table_id)])
                    .collect(),
            ),
            "system_schema.views" => (vec!["keyspace_name", "view_name", "id"], vec![]),
            "system_schema.scylla_tables" if self.scylla_tables => (
                vec!["keyspace_name", "table_name", "partitioner"],
                vec![vec![text("ks"), text("t"), None]],
            ),
            _ => return None,
        })
    }
}

pub(in crate::cluster) const PEER_COLUMNS: [&str; 7] = [
    "peer",
    "host_id",
    "data_center",
    "rack",
    "rpc_address",
    "tokens",
    "schema_version",
];

pub(in crate::cluster) fn peer_row(node: &FakeNode) -> Vec<Cell> {
    vec![
        answers::inet(&node.ip.to_string()),
        answers::uuid(node.host_id),
        answers::text(node.dc),
        answers::text("r1"),
        answers::inet(&node.ip.to_string()),
        node.tokens.clone(),
        answers::uuid(node.schema_version),
    ]
}

/// The page that a body with a paging state at its end asks for.
fn page_of(tail: &[u8]) -> usize {
    match tail {
        [b'p', b'a', b'g', page] => usize::from(*page),
        _ => 0,
    }
}

fn agreed(node: &FakeNode, shard: Option<u16>, scylla: bool) -> Agreed {
    let sharding = |shard| Sharding {
        shard: ShardIdx::new(shard),
        map: ShardMap::new(node.shards.unwrap(), 12).unwrap(),
    };
    Agreed {
        version: ProtocolVersion::V4,
        tablets: TabletsRouting::V2,
        metadata_id: false,
        compression: None,
        is_authenticated: false,
        offer: Offer {
            sharding: shard.filter(|_| !node.is_sharding_invalid).map(sharding),
            sharding_invalid: node.is_sharding_invalid,
            ports: ShardAwarePorts {
                plain: node.shard_aware_port.and_then(NonZeroU16::new),
                tls: node.tls_port.and_then(NonZeroU16::new),
            },
            host_id: scylla.then(|| Uuid::from_u128(node.host_id)),
            is_scylla: scylla,
            ..Offer::default()
        },
    }
}

const LATENCY: Duration = Duration::from_millis(1);
