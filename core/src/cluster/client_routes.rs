//! Client routes: by which address and port each node is reached from here.
//!
//! [`Routes`] holds what the last reading of `system.client_routes` said for the session's own
//! connection ids; a [`RouteTable`] is one reading. Of several rows for a node one is chosen, by
//! the order of the ids in the settings, never by the order of rows. A reading replaces all that
//! was known: a deleted row looks like any other change. Nothing here connects: pools are told by
//! which route they go, or that they wait. Facts: ScyllaDB's document on system keyspaces, and the
//! event CLIENT_ROUTES_CHANGE of its protocol extensions.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::num::NonZeroU16;

use uuid::Uuid;

use super::ConnectionId;
use super::discovery::Scope;
use super::engine::Engine;
use super::pool::{Member, MemberState, Pool};
use super::quoting::InQuotes;
use super::reconnect::Backoff;
use super::rows::{read_rows, text, uuid};
use super::steering::{Blind, Steer};
use super::warnings::warning;
use crate::config::{Config, host_endpoint};
use crate::conn::Answer;
use crate::error::{Error, ErrorKind};
use crate::routing::NodeIdx;
use crate::sorted::SortedMap;
use crate::target::{Endpoint, Security};
use crate::time::Instant;
use crate::wire::Dialect;
use crate::wire::StringList;
use crate::wire::response::ErrorCode;

/// Whether a session can follow routes. Small builds have `no_client_routes` in place of this file.
pub(super) const CAN_FOLLOW: bool = true;

/// How a node is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeRoute {
    /// By its own address: no client routes are followed.
    #[default]
    Direct,
    /// By a client route, which leads there.
    Routed(Endpoint),
    /// By no way that is known. Connections made before stay, new ones wait for a route.
    Unreachable(RouteProblem),
}

/// Why no client route leads to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteProblem {
    /// None of the session's connection ids has a route to it.
    Missing,
    /// The route has no port for this session: no `tls_port` under TLS, no `port` without.
    NoPort,
    /// What the route calls an address is neither an address nor a name.
    BadAddress,
}

/// The routes of a session, if it follows any.
#[derive(Debug)]
pub(super) struct Routes(Option<Followed>);

/// What is followed.
#[derive(Debug)]
struct Followed {
    settings: RouteSettings,
    known: SortedMap<Uuid, Choice>,
}

/// What decides which rows count.
#[derive(Clone, Debug)]
struct RouteSettings {
    /// The connection ids to follow, the preferred ones first.
    ids: Vec<String>,
    security: Security,
    hosts_max: usize,
}

/// The rows of one reading, as far as they count.
#[derive(Debug)]
pub(super) struct RouteTable {
    settings: RouteSettings,
    hosts: SortedMap<Uuid, Choice>,
    rows: usize,
    /// Nodes that were too many.
    refused: usize,
}

/// The best route to a node so far.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Choice {
    /// The place of its connection id in the settings.
    place: usize,
    route: NodeRoute,
}

impl Choice {
    /// The lower is the better.
    const fn rank(&self) -> (bool, usize) {
        (!matches!(self.route, NodeRoute::Routed(_)), self.place)
    }
}

impl Routes {
    pub(super) fn new(config: &Config, security: Security) -> Self {
        Self(config.client_routes.as_ref().map(|routes| Followed {
            settings: RouteSettings {
                ids: routes.connection_ids.clone(),
                security,
                hosts_max: usize::from(config.limits.nodes),
            },
            known: SortedMap::new(),
        }))
    }

    /// Whether the session follows routes.
    pub(super) const fn are_followed(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the nodes' shard-aware port may be used, as far as routes are concerned.
    pub(super) fn allow_shard_aware_port(config: &Config) -> bool {
        let routes = config.client_routes.as_ref();
        routes.is_none_or(|routes| routes.shard_aware_port)
    }

    /// What a reading of this scope has to fill; `None` if it is not to read routes.
    pub(super) fn begin_reading(&self, scope: Scope) -> Option<RouteTable> {
        let followed = self.0.as_ref().filter(|_| scope.routes)?;
        Some(RouteTable {
            hosts: SortedMap::new(),
            rows: 0,
            refused: 0,
            settings: followed.settings.clone(),
        })
    }

    /// Takes what was read, in place of all that was known.
    fn set(&mut self, table: RouteTable) {
        if let Some(followed) = &mut self.0 {
            followed.known = table.hosts;
        }
    }

    /// How to reach a node.
    pub(super) fn to(&self, host_id: Uuid) -> NodeRoute {
        let Some(followed) = &self.0 else {
            return NodeRoute::Direct;
        };
        let missing = || NodeRoute::Unreachable(RouteProblem::Missing);
        let known = followed.known.get(&host_id);
        known.map_or_else(missing, |choice| choice.route.clone())
    }

    /// Whether an event, with its pairs of connection and host id place by place, means that the
    /// table is to be read. It does if one of the ids is ours, and if there are no pairs to tell.
    pub(super) fn are_concerned(
        &self,
        connection_ids: StringList<'_>,
        host_ids: StringList<'_>,
    ) -> bool {
        let Some(followed) = &self.0 else {
            return false;
        };
        let are_pairs = connection_ids.len() == host_ids.len() && !connection_ids.is_empty();
        let is_ours = |id: &str| followed.settings.ids.iter().any(|own| own == id);
        !are_pairs || connection_ids.iter().any(is_ours)
    }
}

impl RouteTable {
    /// Rows seen, to be counted among those of other tables.
    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    /// The statement that reads the rows. The ids are literals: values bound to a QUERY are read
    /// wrongly by nodes that speak of tablets in version 2.
    pub(super) fn statement(&self) -> String {
        let mut statement = String::from(STATEMENT);
        for (place, id) in self.settings.ids.iter().enumerate() {
            if place > 0 {
                statement.push(',');
            }
            // Writing to a string does not fail.
            let _ = write!(statement, "{}", InQuotes::literal(id));
        }
        statement.push(')');
        statement
    }

    /// Takes one page; gives the place of the next.
    pub(super) fn take(
        &mut self,
        answer: &Answer,
        dialect: &Dialect,
    ) -> Result<Option<alloc::boxed::Box<[u8]>>, Error> {
        let names = ["connection_id", "host_id", "address", "port", "tls_port"];
        read_rows(answer, dialect, &names, &mut |cells| {
            let &[connection_id, host_id, address, plain, tls] = cells else {
                return;
            };
            self.rows = self.rows.saturating_add(1);
            let place = text(connection_id)
                .and_then(|id| self.settings.ids.iter().position(|own| own == id));
            let (Some(place), Some(host_id)) = (place, uuid(host_id)) else {
                return;
            };
            let port = match self.settings.security {
                Security::Plain => port(plain),
                Security::Tls => port(tls),
            };
            let route = route(text(address), port);
            self.consider(host_id, Choice { place, route });
        })
    }

    fn consider(&mut self, host_id: Uuid, choice: Choice) {
        let has_place = self.hosts.len() < self.settings.hosts_max;
        match self.hosts.get_mut(&host_id) {
            Some(known) if choice.rank() < known.rank() => *known = choice,
            Some(_) => {}
            None if has_place => drop(self.hosts.insert(host_id, choice)),
            None => self.refused = self.refused.saturating_add(1),
        }
    }
}

impl Pool {
    /// From now on connects go this way, or wait for one. It is tried at once, whatever became of
    /// the old way. Open connections stay, since the node itself answers them; attempts under way
    /// are of no use any more and are given back.
    fn reroute(&mut self, route: NodeRoute) -> Vec<ConnectionId> {
        if let NodeRoute::Routed(endpoint) = &route {
            self.endpoint = endpoint.clone();
        }
        self.route = route;
        self.backoff = Backoff::new(self.settings.reconnect_base, self.settings.reconnect_max);
        self.steer = Steer::default();
        self.blind = Blind::new(self.shard_map().map_or(1, |map| map.count().get()));
        let connecting = |(id, member): (&ConnectionId, &Member)| {
            (member.state == MemberState::Connecting).then_some(*id)
        };
        let given_up: Vec<ConnectionId> = self.members.iter().filter_map(connecting).collect();
        for id in &given_up {
            self.members.remove(id);
        }
        given_up
    }

    /// Whether no way leads to the node.
    pub(super) const fn is_cut_off(&self) -> bool {
        matches!(self.route, NodeRoute::Unreachable(_))
    }
}

impl Engine {
    /// Something was read: routes, nodes or both. Pools go by their routes from now on.
    pub(super) fn follow_routes(&mut self, table: Option<RouteTable>, now: Instant) {
        if !self.routes.are_followed() {
            return;
        }
        if let Some(table) = table {
            if table.refused > 0 {
                self.warn(warning!(
                    "there are routes to more nodes than the limit: some are not used"
                ));
            }
            self.routes.set(table);
        }
        let nodes: Vec<NodeIdx> = self.pools.keys().copied().collect();
        for node in nodes {
            self.follow_route(node, now);
        }
    }

    fn follow_route(&mut self, node: NodeIdx, now: Instant) {
        let Some(pool) = self.pools.get_mut(&node) else {
            return;
        };
        let route = self.routes.to(pool.host_id);
        if pool.route == route {
            return;
        }
        let problem = match route {
            NodeRoute::Unreachable(RouteProblem::NoPort) => {
                Some("its route has no port for this way")
            }
            NodeRoute::Unreachable(RouteProblem::BadAddress) => {
                Some("its route has no usable address")
            }
            _ => None,
        };
        let host_id = pool.host_id;
        let given_up = pool.reroute(route);
        for id in given_up {
            self.close(id, false, now);
        }
        if let Some(problem) = problem {
            self.warn(warning!("node {host_id} is not connected to: {problem}"));
        }
        // The summary goes out with the view.
        self.is_view_dirty = true;
        self.note_liveness(node);
    }

    /// The node does not tell of changed routes; a node that does not know them refuses the word.
    /// Anything else is a failure.
    pub(super) fn routes_refused(&mut self, error: &Error) -> bool {
        let is_refusal = matches!(
            error.kind(),
            ErrorKind::Server(ErrorCode::Protocol | ErrorCode::Invalid)
        );
        if is_refusal {
            self.warn(warning!(
                "changed client routes are not told of, only read now and then: {error}"
            ));
        }
        is_refusal
    }
}

/// Where a row leads.
fn route(address: Option<&str>, port: Option<NonZeroU16>) -> NodeRoute {
    let Some(port) = port else {
        return NodeRoute::Unreachable(RouteProblem::NoPort);
    };
    let address = address.filter(|address| address.len() <= NAME_LEN_MAX);
    match address.and_then(|address| host_endpoint(address, port.get())) {
        Some(Endpoint::Addr(addr)) if addr.ip().is_unspecified() => {
            NodeRoute::Unreachable(RouteProblem::BadAddress)
        }
        Some(endpoint) => NodeRoute::Routed(endpoint),
        None => NodeRoute::Unreachable(RouteProblem::BadAddress),
    }
}

/// An `int` from 1 to 65,535.
fn port(cell: Option<&[u8]>) -> Option<NonZeroU16> {
    let number = i32::from_be_bytes(cell?.try_into().ok()?);
    NonZeroU16::new(u16::try_from(number).ok()?)
}

const STATEMENT: &str = "SELECT connection_id, host_id, address, port, tls_port \
                         FROM system.client_routes WHERE connection_id IN (";

/// The longest name in the domain name system, with its dots.
const NAME_LEN_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::answers;
    use crate::conn::Body;
    use crate::wire::{Flags, Opcode, ProtocolVersion};

    const DIALECT: Dialect = Dialect::plain(ProtocolVersion::V4);

    fn table(ids: &[&str], security: Security, hosts_max: u16) -> RouteTable {
        let mut config = Config::server();
        config.limits.nodes = hosts_max;
        config.client_routes = Some(crate::config::ClientRoutes::new(ids.iter().copied()));
        let routes = Routes::new(&config, security);
        assert!(routes.begin_reading(Scope::SCHEMA).is_none());
        routes.begin_reading(Scope::ROUTES).unwrap()
    }

    fn chosen(mut table: RouteTable, rows: &[Vec<answers::Cell>]) -> RouteTable {
        let columns = ["connection_id", "host_id", "address", "port", "tls_port"];
        let answer = answers::rows(&columns, rows, None);
        assert_eq!(table.take(&answer, &DIALECT), Ok(None));
        table
    }

    fn row(id: &str, host: u128, port: Option<i32>) -> Vec<answers::Cell> {
        [
            answers::text(id),
            answers::uuid(host),
            answers::text("10.0.0.9"),
            port.and_then(answers::int),
            None,
        ]
        .to_vec()
    }

    fn routed(port: u16) -> NodeRoute {
        NodeRoute::Routed(Endpoint::Addr(([10, 0, 0, 9], port).into()))
    }

    /// Captured ROWS: id conn-a, one host, 10.0.0.9, port 9142, no port for TLS.
    #[test]
    fn a_capture_is_read() {
        let body = answers::bytes(
            "00000002 00000001 00000005 0006 73797374656d 000d 636c69656e745f726f75746573
             000d 636f6e6e656374696f6e5f6964 000d  0007 686f73745f6964 000c  0007 61646472657373 000d
             0004 706f7274 0009 0008 746c735f706f7274 0009  00000001
             00000006 636f6e6e2d61  00000010 0102030405060708090a0b0c0d0e0f10
             00000008 31302e302e302e39  00000004 000023b6  ffffffff",
        );
        let answer = Answer {
            opcode: Opcode::Result,
            flags: Flags::NONE,
            body: Body::from_slice(&body),
        };
        let host = Uuid::from_u128(0x0102030405060708090a0b0c0d0e0f10);
        let no_port = NodeRoute::Unreachable(RouteProblem::NoPort);
        for (security, id, expected) in [
            (Security::Plain, "conn-a", Some(routed(9142))),
            (Security::Tls, "conn-a", Some(no_port)),
            (Security::Plain, "conn-b", None),
        ] {
            let mut table = table(&[id], security, 10);
            assert_eq!(table.take(&answer, &DIALECT), Ok(None));
            let found = table.hosts.get(&host).map(|choice| choice.route.clone());
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn ids_are_quoted() {
        let text = table(&["c1", "it's", "'); DROP", "é\\"], Security::Plain, 1).statement();
        assert_eq!(
            text,
            "SELECT connection_id, host_id, address, port, tls_port FROM system.client_routes \
             WHERE connection_id IN ('c1','it''s','''); DROP','é\\')"
        );
    }

    /// The first id with a usable route counts, in every order of rows.
    #[test]
    fn of_several_routes_to_a_node_one_is_chosen_by_the_order_of_ids() {
        let rows = [
            row("a", 7, None),
            row("b", 7, Some(2)),
            row("c", 7, Some(3)),
            row("strange", 7, Some(4)),
        ];
        let permutations = [
            [0, 1, 2, 3],
            [0, 2, 1, 3],
            [1, 0, 3, 2],
            [1, 2, 0, 3],
            [2, 0, 1, 3],
            [2, 3, 1, 0],
            [3, 2, 1, 0],
        ];
        for order in permutations {
            for (ids, expected) in [
                (&["a", "b", "c"][..], routed(2)),
                (&["c", "b", "a"], routed(3)),
                (&["a"], NodeRoute::Unreachable(RouteProblem::NoPort)),
            ] {
                let rows = order.map(|place: usize| rows[place].clone());
                let table = chosen(table(ids, Security::Plain, 10), &rows);
                let choice = table.hosts.get(&Uuid::from_u128(7)).unwrap();
                assert_eq!(choice.route, expected, "{order:?} {ids:?}");
            }
        }
    }

    #[test]
    fn nodes_are_bounded_and_rows_counted() {
        let rows: Vec<_> = (0..10).map(|n| row("a", n % 5, Some(1))).collect();
        let table = chosen(table(&["a"], Security::Plain, 3), &rows);
        assert_eq!((table.hosts.len(), table.rows), (3, 10));
        assert_eq!(table.refused, 4);
    }
}
