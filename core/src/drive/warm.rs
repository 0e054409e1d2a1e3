//! Saving what a session has learned, for the next one.

use alloc::vec::Vec;

use super::session::Session;
use crate::cluster::{Sources, save};
use crate::gather::Gather;

impl Session {
    /// What this session has learned of the cluster, for a later session to begin with: put it into
    /// [`WarmStart`](crate::cluster::WarmStart). Such a session connects to all nodes and shards at
    /// once, has the statements prepared, and routes its first request right without having read
    /// anything.
    ///
    /// At most `bytes_max` bytes; of statements and tablets those used least are left out. Empty if
    /// nothing is known yet, or nodes and schema do not fit. About 40 bytes a tablet, some hundred a
    /// node, table or statement. No credentials are in it.
    pub fn warm_start(&self, bytes_max: usize) -> Vec<u8> {
        let hub = self.hub();
        let statements = hub.prepared().with(|cache| cache.statements_by_use());
        let connected = hub.pools().with(|pools| pools.one_of_each_node(0));
        let offers: Vec<_> = connected
            .iter()
            .map(|(node, cell)| (*node, cell.agreed().offer))
            .gather();
        save(
            &Sources {
                config: hub.config(),
                view: &hub.view().load(),
                status: &hub.summary(),
                statements: &statements.unwrap_or_default(),
                offers: &offers,
            },
            bytes_max,
        )
    }
}
