//! Where a partition lives, and what a request for it adds to the counters.

use std::sync::Arc;

use super::cluster::Cluster;
use super::codec::Consistency;
use super::error::CqlError;
use super::schema::Table;
use super::stats::Counters;
use super::tablets::{Asking, Located, Payload, Replica, payload};
use super::token::shard_of;

/// The connection a request came by, as far as execution cares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) node: usize,
    pub(crate) shard: u32,
    pub(crate) v1: bool,
    pub(crate) v2: bool,
    pub(crate) now: i64,
    /// EXECUTE with its version block (if v2), else QUERY.
    pub(crate) by_execute: bool,
    pub(crate) block: Option<u8>,
}

impl Caller {
    pub(crate) fn at(&self) -> Replica {
        Replica {
            node: self.node,
            shard: self.shard,
        }
    }
}

/// The owners of one partition.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) token: i64,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) leader: Option<Replica>,
    pub(crate) strong: bool,
}

/// A request for one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) write: bool,
    pub(crate) conditional: bool,
    pub(crate) key_bound: bool,
    pub(crate) consistency: Consistency,
}

impl Request {
    /// Writes and quorum reads of strongly consistent tables.
    fn needs_leader(&self, route: &Route) -> bool {
        let quorum = matches!(
            self.consistency,
            Consistency::Quorum | Consistency::LocalQuorum
        );
        route.strong && (self.write || quorum)
    }
}

impl Cluster {
    pub(crate) fn is_strong(&self, table: &Table) -> bool {
        self.catalogue
            .keyspace(&table.keyspace)
            .is_some_and(|keyspace| keyspace.is_strong())
    }

    pub(crate) fn route(&self, table: &Table, token: i64) -> Route {
        if let Some(map) = self.tablets.get(&table.id) {
            let strong = self.is_strong(table);
            let tablet = map.locate(token).map(|located| located.tablet);
            return Route {
                token,
                replicas: tablet
                    .map(|tablet| tablet.replicas.clone())
                    .unwrap_or_default(),
                leader: tablet
                    .filter(|_| strong)
                    .and_then(|tablet| tablet.leader_replica()),
                strong,
            };
        }
        let nodes = self
            .catalogue
            .keyspace(&table.keyspace)
            .map(|keyspace| {
                self.ring
                    .replicas(token, &keyspace.replication, &self.places)
            })
            .unwrap_or_default();
        let replicas = nodes
            .into_iter()
            .map(|node| {
                let settings = &self.options.nodes[node];
                let shard = shard_of(token, settings.shards.max(1), settings.ignore_msb);
                Replica { node, shard }
            })
            .collect();
        Route {
            token,
            replicas,
            leader: None,
            strong: false,
        }
    }

    /// Counts a request at the node it came to.
    pub(crate) fn classify(
        &mut self,
        table: &Arc<Table>,
        caller: &Caller,
        route: &Route,
        request: Request,
    ) {
        let quorum = matches!(
            request.consistency,
            Consistency::Quorum | Consistency::LocalQuorum
        );
        let needs_leader = route.strong && (request.write || quorum);
        let owners: &[Replica] = if needs_leader {
            route.leader.as_slice()
        } else {
            &route.replicas
        };
        self.gather.mark();
        let at = caller.at();
        let at_node = owners.iter().any(|owner| owner.node == at.node);
        let Some(node) = self.nodes.get_mut(caller.node) else {
            return;
        };
        let (_, counters) = node
            .counters
            .entry(table.id)
            .or_insert_with(|| (Arc::clone(table), Counters::default()));
        let one = Counters {
            requests: 1,
            at_owner_node: u64::from(at_node),
            at_owner_shard: u64::from(owners.contains(&at)),
            needing_leader: u64::from(needs_leader),
            at_leader: u64::from(needs_leader && at_node),
            forwarded: u64::from(!at_node),
        };
        *counters += one;
        if let Some(of_shard) = node.shard_counters.get_mut(at.shard as usize) {
            *of_shard += one;
        }
    }

    /// UNAVAILABLE when too few replicas are up for the level. A strongly consistent group without
    /// a leader or a majority times out instead, whatever the level was.
    pub(crate) fn check_available(
        &self,
        caller: &Caller,
        route: &Route,
        request: Request,
    ) -> Result<(), CqlError> {
        let consistency = request.consistency;
        if route.strong {
            return self.check_group(route, request);
        }
        let local = |replica: &&Replica| {
            self.places[replica.node].datacenter == self.places[caller.node].datacenter
        };
        let locally = matches!(
            consistency,
            Consistency::LocalQuorum | Consistency::LocalOne | Consistency::LocalSerial
        );
        let counted: Vec<&Replica> = route
            .replicas
            .iter()
            .filter(|replica| !locally || local(replica))
            .collect();
        let alive = counted
            .iter()
            .filter(|replica| self.nodes[replica.node].alive)
            .count();
        let required = match consistency {
            Consistency::Any => 0,
            Consistency::One | Consistency::LocalOne => 1,
            Consistency::Two => 2,
            Consistency::Three => 3,
            Consistency::All => counted.len(),
            _ => counted.len() / 2 + 1,
        };
        if alive >= required {
            return Ok(());
        }
        Err(CqlError::Unavailable {
            consistency,
            required: i32::try_from(required).unwrap_or(0),
            alive: i32::try_from(alive).unwrap_or(0),
        })
    }

    fn check_group(&self, route: &Route, request: Request) -> Result<(), CqlError> {
        let alive = route
            .replicas
            .iter()
            .filter(|r| self.nodes[r.node].alive)
            .count();
        let is_served = if request.needs_leader(route) {
            route.leader.is_some() && alive > route.replicas.len() / 2
        } else {
            alive > 0
        };
        if is_served {
            return Ok(());
        }
        let (consistency, received, block_for) = (Consistency::One, 0, 1);
        Err(if request.write {
            let write_type = "SIMPLE".to_owned();
            CqlError::WriteTimeout {
                consistency,
                received,
                block_for,
                write_type,
            }
        } else {
            CqlError::ReadTimeout {
                consistency,
                received,
                block_for,
                data_present: false,
            }
        })
    }

    /// The routing payload of a successful request.
    pub(crate) fn payload(
        &self,
        table: &Table,
        caller: &Caller,
        route: &Route,
        request: Request,
    ) -> Option<Payload> {
        let located: Located<'_> = self.tablets.get(&table.id)?.locate(route.token)?;
        let asking = Asking {
            v1: caller.v1,
            v2: caller.v2,
            block: caller.block,
            strong: route.strong,
            conditional: request.conditional,
            key_bound: request.key_bound,
            at: caller.at(),
        };
        payload(asking, located, &self.host_ids())
    }

    /// A QUERY on a v2 connection cannot carry the block that some statements demand.
    pub(crate) fn check_hazard(
        &self,
        table: &Table,
        caller: &Caller,
        route: &Route,
        request: Request,
    ) -> Result<(), CqlError> {
        let demanded = self.tablets.contains_key(&table.id)
            && (route.strong || (request.key_bound && !request.conditional));
        if self.options.query_hazard && caller.v2 && !caller.by_execute && demanded {
            return Err(CqlError::Server(
                "TABLETS_ROUTING_V2 requires a tablet version block on every EXECUTE".to_owned(),
            ));
        }
        Ok(())
    }
}
