//! The replicas of a request: from the tablet that owns its token, or from the ring.
//!
//! They are taken as listed, without a judgement on whether they may be contacted; the leader is
//! named only where the list tells it.

use super::Node;
use super::plan::Source;
use super::planner::RouteRequest;
use super::tablet::Replica;
use super::tablet_table::PLANNED_REPLICAS;
use super::view::{KeyspaceConsistency, Placement, View};
use super::{NodeIdx, ShardIdx};
use crate::rng::mix;

/// The replicas of a request in the order listed.
pub(super) struct Located {
    pub(super) source: Source,
    pub(super) replicas: heapless::Vec<(NodeIdx, Option<ShardIdx>), PLANNED_REPLICAS>,
    /// The leader of its tablet, if the table has such and we know it.
    pub(super) leader: Option<(NodeIdx, Option<ShardIdx>)>,
    /// Set if the list is sorted by host id: a number that differs from tablet to tablet.
    rotation: Option<u64>,
}

impl Located {
    pub(super) fn new(view: &View, request: &RouteRequest) -> Self {
        let nothing = Self {
            source: Source::None,
            replicas: heapless::Vec::new(),
            leader: None,
            rotation: None,
        };
        let table = request.table.and_then(|handle| view.table(handle));
        let (Some(table), Some(token)) = (table, request.token) else {
            return nothing;
        };
        let topology = view.topology();
        match &table.placement {
            Placement::Ring(strategy) => {
                let Some(ring) = view.ring(*strategy) else {
                    return nothing;
                };
                let replicas = ring.of(token).iter().map(|&idx| {
                    let shard_map = topology.node(idx).and_then(Node::shard_map);
                    (idx, shard_map.map(|shards| shards.shard_of(token)))
                });
                let replicas = replicas.take(PLANNED_REPLICAS).collect();
                Self {
                    source: Source::Ring,
                    replicas,
                    ..nothing
                }
            }
            Placement::Tablets(tablets, consistency) => {
                let Some(hit) = tablets.find(token) else {
                    return nothing;
                };
                let resolve = |replica: &Replica| {
                    let node = topology.node(replica.node()?)?;
                    // A shard that the node does not have is none.
                    let shard = node
                        .shard_map()
                        .and_then(|shards| shards.check(replica.shard));
                    Some((node.idx(), shard))
                };
                let is_led = *consistency == KeyspaceConsistency::Strong && hit.version.is_some();
                Self {
                    source: Source::Tablet,
                    replicas: hit.replicas.iter().filter_map(resolve).collect(),
                    leader: hit.replicas.first().filter(|_| is_led).and_then(resolve),
                    rotation: hit.version.map(|_| mix(hit.last.cast_unsigned())),
                }
            }
        }
    }

    pub(super) fn rotate(&mut self) {
        let Some(rotation) = self.rotation else {
            return;
        };
        let start = rotation
            .checked_rem(self.replicas.len() as u64)
            .unwrap_or(0);
        self.replicas
            .rotate_left(usize::try_from(start).unwrap_or(0));
    }
}
