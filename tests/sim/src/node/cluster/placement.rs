//! Tablets of the cluster: where new ones go, and how an operator moves, splits and merges them.

use std::collections::BTreeMap;

use super::super::error::CqlError;
use super::super::schema::{Keyspace, Replication};
use super::super::tablets::{Replica, Tablet, TabletMap, drawn};
use super::{Cluster, ControlError};

impl Cluster {
    /// Tablets of a table; empty if it has none.
    pub fn tablets(&self, keyspace: &str, table: &str) -> Vec<Tablet> {
        self.map_of(keyspace, table)
            .map(|map| map.tablets().to_vec())
            .unwrap_or_default()
    }

    /// Index of the tablet of a token.
    pub fn tablet_of(&self, keyspace: &str, table: &str, token: i64) -> Option<usize> {
        self.map_of(keyspace, table).map(|map| map.index_of(token))
    }

    /// The version of a tablet as payloads of v2 tell it; none of a strongly consistent tablet
    /// without a leader.
    pub fn tablet_version(&self, keyspace: &str, table: &str, tablet: usize) -> Option<u64> {
        let strong = self.catalogue.keyspace(keyspace)?.is_strong();
        let map = self.map_of(keyspace, table)?;
        let tablet = map.tablets().get(tablet)?;
        tablet.told_version(strong, &self.host_ids())
    }

    fn map_of(&self, keyspace: &str, table: &str) -> Option<&TabletMap> {
        self.tablets
            .get(&self.catalogue.table(keyspace, table).ok()?.id)
    }

    fn tablet_mut(
        &mut self,
        keyspace: &str,
        table: &str,
        tablet: usize,
    ) -> Result<&mut Tablet, ControlError> {
        self.map_mut(keyspace, table)?
            .tablet_mut(tablet)
            .ok_or_else(|| ControlError(format!("no tablet {tablet}")))
    }

    fn map_mut(&mut self, keyspace: &str, table: &str) -> Result<&mut TabletMap, ControlError> {
        let id = self
            .catalogue
            .table(keyspace, table)
            .map_err(|e| ControlError(e.message()))?
            .id;
        self.tablets
            .get_mut(&id)
            .ok_or_else(|| ControlError(format!("{keyspace}.{table} has no tablets")))
    }

    fn check_replica(&self, replica: Replica) -> Result<(), ControlError> {
        let settings = self.options.nodes.get(replica.node);
        if settings.is_some_and(|node| replica.shard < node.shards.max(1)) {
            return Ok(());
        }
        let Replica { node, shard } = replica;
        Err(ControlError(format!("no shard {shard} on node {node}")))
    }

    /// Moves a replica of a tablet at once. The leader stays the same copy.
    pub fn move_tablet(
        &mut self,
        (keyspace, table): (&str, &str),
        tablet: usize,
        from: Replica,
        to: Replica,
    ) -> Result<(), ControlError> {
        self.check_replica(to)?;
        let tablet = self.tablet_mut(keyspace, table, tablet)?;
        if tablet
            .replicas
            .iter()
            .any(|replica| *replica != from && replica.node == to.node)
        {
            return Err(ControlError(format!(
                "node {} holds a replica already",
                to.node
            )));
        }
        let slot = tablet.replicas.iter_mut().find(|replica| **replica == from);
        *slot.ok_or_else(|| ControlError("no such replica".to_owned()))? = to;
        tablet.pending = None;
        Ok(())
    }

    /// Begins a migration: `to` counts as rightly routed, but payloads do not show it.
    pub fn begin_migration(
        &mut self,
        (keyspace, table): (&str, &str),
        tablet: usize,
        to: Replica,
    ) -> Result<(), ControlError> {
        self.check_replica(to)?;
        self.tablet_mut(keyspace, table, tablet)?.pending = Some(to);
        Ok(())
    }

    /// Sets the leader of a tablet by position among its replicas; none: election.
    pub fn set_leader(
        &mut self,
        (keyspace, table): (&str, &str),
        tablet: usize,
        leader: Option<usize>,
    ) -> Result<(), ControlError> {
        let tablet = self.tablet_mut(keyspace, table, tablet)?;
        if leader.is_some_and(|at| at >= tablet.replicas.len()) {
            return Err(ControlError("no such replica".to_owned()));
        }
        tablet.leader = leader;
        Ok(())
    }

    /// Turns over bits of a tablet's version, as if something else had changed than did.
    pub fn flip_version(
        &mut self,
        (keyspace, table): (&str, &str),
        tablet: usize,
        bits: u64,
    ) -> Result<(), ControlError> {
        self.tablet_mut(keyspace, table, tablet)?.version_flips ^= bits;
        Ok(())
    }

    /// Splits a tablet in two.
    pub fn split(
        &mut self,
        (keyspace, table): (&str, &str),
        tablet: usize,
    ) -> Result<(), ControlError> {
        let done = self.map_mut(keyspace, table)?.split(tablet);
        if done {
            Ok(())
        } else {
            Err(ControlError("cannot split this".to_owned()))
        }
    }

    /// Merges a tablet with the one after it.
    pub fn merge(
        &mut self,
        (keyspace, table): (&str, &str),
        tablet: usize,
    ) -> Result<(), ControlError> {
        let done = self.map_mut(keyspace, table)?.merge(tablet);
        if done {
            Ok(())
        } else {
            Err(ControlError("cannot merge this".to_owned()))
        }
    }

    /// The tablets of a new table, spread evenly over nodes and shards.
    pub(crate) fn place_tablets(&self, keyspace: &Keyspace) -> Result<TabletMap, CqlError> {
        let count = match keyspace.tablets {
            Some(initial) if initial > 0 => initial as usize,
            _ => self
                .options
                .tablet_count
                .map_or_else(|| self.default_tablets(), |n| n as usize),
        };
        let Replication::NetworkTopology { factors } = &keyspace.replication else {
            return Err(CqlError::Config(
                "tablets need NetworkTopologyStrategy".to_owned(),
            ));
        };
        for (datacenter, factor) in factors {
            let owning = self
                .places
                .iter()
                .filter(|place| place.datacenter == *datacenter && !place.zero_token)
                .count();
            if owning < *factor as usize {
                return Err(CqlError::Config(format!(
                    "Datacenter {datacenter} doesn't have enough token-owning nodes for \
                     replication_factor={factor}"
                )));
            }
        }
        let mut loads: Vec<Vec<u32>> = self
            .nodes
            .iter()
            .map(|node| vec![0; node.connected.len()])
            .collect();
        Ok(TabletMap::new(count, |tablet| {
            self.place_one(tablet, factors, &mut loads)
        }))
    }

    fn default_tablets(&self) -> usize {
        let shards: usize = self.nodes.iter().map(|node| node.connected.len()).sum();
        shards.next_power_of_two() * 2
    }

    /// The least loaded nodes of each datacenter, on different racks as far as there are any.
    fn place_one(
        &self,
        tablet: usize,
        factors: &BTreeMap<String, u32>,
        loads: &mut [Vec<u32>],
    ) -> Vec<Replica> {
        let mut replicas = Vec::new();
        for (datacenter, factor) in factors {
            let mut members: Vec<usize> = (0..self.nodes.len())
                .filter(|node| {
                    let place = &self.places[*node];
                    place.datacenter == *datacenter && !place.zero_token
                })
                .collect();
            let spread = (self.options.seed ^ tablet as u64).wrapping_mul(31);
            members.sort_by_key(|node| {
                let load: u32 = loads[*node].iter().sum();
                let per_shard = load * 1000 / u32::try_from(loads[*node].len()).unwrap_or(1);
                (per_shard, drawn(spread, "place", *node as u64))
            });
            let mut chosen: Vec<usize> = Vec::new();
            let mut racks: Vec<&str> = Vec::new();
            for fresh_rack in [true, false] {
                for node in &members {
                    let rack = self.places[*node].rack.as_str();
                    let full = chosen.len() >= *factor as usize;
                    if full || chosen.contains(node) || (fresh_rack && racks.contains(&rack)) {
                        continue;
                    }
                    chosen.push(*node);
                    racks.push(rack);
                }
            }
            for node in chosen {
                let shards = &mut loads[node];
                let shard = (0..shards.len())
                    .min_by_key(|shard| shards[*shard])
                    .unwrap_or(0);
                shards[shard] += 1;
                replicas.push(Replica {
                    node,
                    shard: u32::try_from(shard).unwrap_or(0),
                });
            }
        }
        replicas
    }
}
