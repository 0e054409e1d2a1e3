//! The open connections by node and shard, as the data plane reads them.
//!
//! An immutable picture: the control plane replaces it whole, readers never lock. Which connections
//! there should be is decided elsewhere; here is only which of them takes a request.

use alloc::vec::Vec;

use super::cell::Cell;
use super::tally::ShardTally;
use crate::cluster::{Assignment, ConnectionId};
use crate::conn::extensions::TabletsRouting;
use crate::gather::Gather;
use crate::routing::{Load, NodeIdx, ShardIdx};
use crate::sorted::sort_few;
use crate::sync::{Gauge, Shared};

/// The open connections by node and shard.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    /// By index of the node.
    nodes: Vec<Pool>,
    /// Open connections that take no new requests.
    others: Vec<Shared<Cell>>,
    /// What the connections counted that are gone.
    gone: ShardTally,
    /// Whether one of those that serve agreed the second tablets extension.
    speaks_v2: bool,
}

/// The open connections of one node, sorted by shard.
#[derive(Debug, Default)]
struct Pool {
    connections: Vec<(Option<ShardIdx>, Shared<Cell>)>,
    /// By shard, where shards get their connection at their first use.
    wishes: Option<Shared<Vec<Wish>>>,
}

/// Whether a shard has been asked for.
#[derive(Debug, Default)]
pub(super) struct Wish(Gauge);

impl Wish {
    /// True for the first who makes it.
    fn make(&self) -> bool {
        self.0.load() == 0 && self.0.add(1) == 0
    }

    /// Nobody has heard of it.
    pub(super) fn take_back(&self) {
        self.0.store(0);
    }
}

impl Pools {
    /// Joins the control plane's assignment with the open cells, which come sorted by id. What
    /// was wished for stays so.
    pub(super) fn next(&self, assignments: &[Assignment], open: Vec<Shared<Cell>>) -> Self {
        let mut pools = Self {
            gone: self.gone,
            ..Self::default()
        };
        let mut is_assigned = alloc::vec![false; open.len()];
        let mut find = |id: ConnectionId| {
            let place = open.binary_search_by_key(&id, |cell| cell.id()).ok()?;
            *is_assigned.get_mut(place)? = true;
            open.get(place).cloned()
        };
        for assignment in assignments {
            let place = usize::from(assignment.node.value());
            if pools.nodes.len() <= place {
                pools
                    .nodes
                    .resize_with(place.saturating_add(1), Pool::default);
            }
            let Some(pool) = pools.nodes.get_mut(place) else {
                continue;
            };
            for (id, shard) in &assignment.connections {
                if let Some(cell) = find(*id) {
                    pools.speaks_v2 |= cell.agreed().tablets == TabletsRouting::V2;
                    pool.connections.push((*shard, cell));
                }
            }
            sort_few(&mut pool.connections, |(shard, cell)| (*shard, cell.id()));
            pool.wishes = assignment.lazy_shards.map(|shards| {
                let before = self.pool(assignment.node);
                let before = before.and_then(|before| before.wishes.clone());
                let same = before.filter(|wishes| wishes.len() == usize::from(shards));
                same.unwrap_or_else(|| Shared::new((0..shards).map(|_| Wish::default()).collect()))
            });
        }
        let others = open.into_iter().zip(is_assigned);
        let others = others.filter_map(|(cell, is_assigned)| (!is_assigned).then_some(cell));
        pools.others = others.gather();
        pools
    }

    /// Keeps the count of a connection that has ended.
    pub(super) fn with_gone(mut self, tally: ShardTally) -> Self {
        self.gone.add(tally);
        self
    }

    /// Nothing is open any more.
    pub(super) fn ended(&self) -> Self {
        Self {
            gone: self.tally(),
            ..Self::default()
        }
    }

    /// Requests of the session that were meant for a shard.
    pub(crate) fn tally(&self) -> ShardTally {
        let mut sum = self.gone;
        let serving = self.nodes.iter().flat_map(|pool| &pool.connections);
        let serving = serving.map(|(_, cell)| cell);
        for cell in serving.chain(&self.others) {
            sum.add(cell.tally());
        }
        sum
    }

    /// Whether a node may want what only a prepared statement can carry.
    pub(crate) const fn speaks_v2(&self) -> bool {
        self.speaks_v2
    }

    /// Wishes for a shard that has no connection yet; `None` if that is not how it gets one, or
    /// somebody has wished for it already.
    pub(super) fn wish(&self, node: NodeIdx, shard: ShardIdx) -> Option<&Wish> {
        let wishes = self.pool(node)?.wishes.as_deref()?;
        wishes
            .get(usize::from(shard.value()))
            .filter(|wish| wish.make())
    }

    /// The connection to use for a shard of a node: the least busy one of that shard, else the
    /// least busy of two drawn from all.
    pub(crate) fn pick(
        &self,
        node: NodeIdx,
        shard: Option<ShardIdx>,
        entropy: u64,
    ) -> Option<&Shared<Cell>> {
        let pool = self.pool(node)?;
        let own = pool.of_shard(shard);
        if let Some((_, cell)) = own.iter().min_by_key(|(_, cell)| cell.in_flight()) {
            return Some(cell);
        }
        let all = &pool.connections;
        let len = u64::try_from(all.len()).ok().filter(|&len| len > 0)?;
        let draw = |bits: u64| all.get(usize::try_from(bits % len).unwrap_or(0));
        let pair = [draw(entropy), draw(entropy >> 32)];
        pair.into_iter()
            .flatten()
            .map(|(_, cell)| cell)
            .min_by_key(|cell| cell.in_flight())
    }

    /// The least busy connection of a node but this one.
    pub(crate) fn pick_other(&self, node: NodeIdx, full: &Cell) -> Option<&Shared<Cell>> {
        let others = self.pool(node)?.connections.iter().map(|(_, cell)| cell);
        others
            .filter(|cell| cell.id() != full.id())
            .min_by_key(|cell| cell.in_flight())
    }

    /// One connection of each connected node.
    pub(crate) fn one_of_each_node(&self, entropy: u64) -> Vec<(NodeIdx, Shared<Cell>)> {
        let nodes = (0..self.nodes.len()).filter_map(NodeIdx::at);
        nodes
            .filter_map(|node| Some((node, Shared::clone(self.pick(node, None, entropy)?))))
            .gather()
    }

    /// The open connections of a node.
    pub(crate) fn of_node(&self, node: NodeIdx) -> impl Iterator<Item = (Option<ShardIdx>, &Cell)> {
        let pool = self.pool(node).map_or(&[][..], |pool| &pool.connections);
        pool.iter().map(|(shard, cell)| (*shard, &**cell))
    }

    /// How many shards of a node have a connection.
    pub(crate) fn shards_of(&self, node: NodeIdx) -> u16 {
        let connections = self.pool(node).map_or(&[][..], |pool| &pool.connections);
        // Sorted by shard.
        let shards = connections.chunk_by(|(a, _), (b, _)| a == b);
        let sharded = shards.filter(|same| same.iter().any(|(shard, _)| shard.is_some()));
        u16::try_from(sharded.count()).unwrap_or(u16::MAX)
    }

    fn pool(&self, node: NodeIdx) -> Option<&Pool> {
        self.nodes.get(usize::from(node.value()))
    }
}

impl Pool {
    fn of_shard(&self, shard: Option<ShardIdx>) -> &[(Option<ShardIdx>, Shared<Cell>)] {
        if shard.is_none() {
            return &[];
        }
        let start = self.connections.partition_point(|(held, _)| *held < shard);
        let end = self.connections.partition_point(|(held, _)| *held <= shard);
        self.connections.get(start..end).unwrap_or(&[])
    }
}

impl Load for Pools {
    fn in_flight(&self, node: NodeIdx, shard: Option<ShardIdx>) -> u32 {
        let Some(pool) = self.pool(node) else {
            return 0;
        };
        let of = match pool.of_shard(shard) {
            [] => &pool.connections[..],
            own => own,
        };
        of.iter()
            .map(|(_, cell)| cell.in_flight())
            .fold(0, u32::saturating_add)
    }

    fn is_connected(&self, node: NodeIdx) -> bool {
        self.pool(node)
            .is_some_and(|pool| !pool.connections.is_empty())
    }
}

#[cfg(all(test, not(messina_loom)))]
mod tests {
    use super::*;
    use crate::drive::tally::Aim;

    fn lazily(shards: u16) -> Vec<Assignment> {
        Vec::from([Assignment {
            node: NodeIdx::at(1).unwrap(),
            connections: Vec::new(),
            lazy_shards: Some(shards),
        }])
    }

    /// However often pools are published, a shard is asked for once; anew where shards are others.
    #[test]
    fn a_shard_is_wished_for_once() {
        let (node, shard) = (NodeIdx::at(1).unwrap(), ShardIdx::new(3));
        let pools = Pools::default().next(&lazily(4), Vec::new());
        assert!(pools.wish(node, shard).is_some());
        let pools = pools.next(&lazily(4), Vec::new());
        assert!(pools.wish(node, shard).is_none());
        assert!(pools.wish(node, ShardIdx::new(2)).is_some());
        assert!(pools.wish(node, ShardIdx::new(4)).is_none(), "not there");
        assert!(pools.wish(NodeIdx::at(0).unwrap(), shard).is_none());
        let pools = pools.next(&lazily(8), Vec::new());
        let wish = pools.wish(node, shard).unwrap();
        // Nobody heard of it, so the next request says it again.
        wish.take_back();
        assert!(pools.wish(node, shard).is_some());
    }

    #[test]
    fn counts_of_connections_that_ended_are_kept() {
        let mut tally = ShardTally::default();
        for aim in [Aim::Reached, Aim::None, Aim::Missed, Aim::Reached] {
            tally.count(aim);
        }
        let expected = ShardTally {
            reached: 2,
            missed: 1,
        };
        assert_eq!(tally, expected);
        let pools = Pools::default().with_gone(tally);
        let pools = pools.next(&lazily(4), Vec::new()).with_gone(tally);
        let ended = pools.ended().tally();
        assert_eq!((ended.reached, ended.missed), (4, 2));
    }
}
