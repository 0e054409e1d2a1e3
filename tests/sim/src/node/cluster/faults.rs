//! Faults: stopped nodes, slow, silent and failing ones, and the events about them.

use super::super::connection::EventKind;
use super::super::error::CqlError;
use super::super::options::TabletsMode;
use super::{Cluster, ControlError, Node, NodeEvent};

/// Faults and warnings that wait for their requests, for each node.
const QUEUED_MAX: usize = 100_000;

impl Cluster {
    fn node_mut(&mut self, node: usize) -> Result<&mut Node, ControlError> {
        self.nodes
            .get_mut(node)
            .ok_or_else(|| ControlError(format!("no node {node}")))
    }

    /// Stops a node: its connections close, peers say DOWN, strong tablets elect other leaders.
    pub fn kill(&mut self, node: usize) -> Result<(), ControlError> {
        let state = self.node_mut(node)?;
        if !core::mem::replace(&mut state.alive, false) {
            return Ok(());
        }
        state.prepared.clear();
        for connection in self.connections.values_mut().filter(|c| c.node == node) {
            connection.kill();
            self.touched.push(connection.id);
        }
        let alive: Vec<bool> = self.nodes.iter().map(|node| node.alive).collect();
        for map in self.tablets.values_mut() {
            for at in 0..map.len() {
                let Some(tablet) = map.tablet_mut(at) else {
                    continue;
                };
                if tablet
                    .leader_replica()
                    .is_some_and(|leader| leader.node == node)
                {
                    tablet.leader = tablet.replicas.iter().position(|r| alive[r.node]);
                }
            }
        }
        self.announce(node, NodeEvent::Down);
        Ok(())
    }

    /// Starts a stopped node again, with an empty cache of prepared statements; peers say UP.
    /// It leads the strong tablets of its own that had no leader.
    pub fn start(&mut self, node: usize) -> Result<(), ControlError> {
        if core::mem::replace(&mut self.node_mut(node)?.alive, true) {
            return Ok(());
        }
        for map in self.tablets.values_mut() {
            for at in 0..map.len() {
                let Some(tablet) = map.tablet_mut(at) else {
                    continue;
                };
                if tablet.leader.is_none() {
                    tablet.leader = tablet.replicas.iter().position(|r| r.node == node);
                }
            }
        }
        self.announce(node, NodeEvent::Up);
        Ok(())
    }

    /// Delays every reply of a node.
    pub fn set_delay(&mut self, node: usize, micros: u64) -> Result<(), ControlError> {
        self.node_mut(node)?.delay_micros = i64::try_from(micros).unwrap_or(i64::MAX / 4);
        Ok(())
    }

    /// The node leaves its next `count` requests for user tables without answer, not executed.
    pub fn drop_next(&mut self, node: usize, count: u64) -> Result<(), ControlError> {
        self.node_mut(node)?.drop_next = count;
        Ok(())
    }

    /// The node answers its next `count` requests for user tables with `error`, not executing them.
    pub fn fail_next(
        &mut self,
        node: usize,
        error: &CqlError,
        count: usize,
    ) -> Result<(), ControlError> {
        let queue = &mut self.node_mut(node)?.fail_next;
        let room = QUEUED_MAX.saturating_sub(queue.len());
        queue.extend(core::iter::repeat_n(error, count.min(room)).cloned());
        Ok(())
    }

    /// The node answers its next `count` requests for user tables with `warning` beside the result.
    pub fn warn_next(
        &mut self,
        node: usize,
        warning: &str,
        count: usize,
    ) -> Result<(), ControlError> {
        let queue = &mut self.node_mut(node)?.warn_next;
        let room = QUEUED_MAX.saturating_sub(queue.len());
        queue.extend(core::iter::repeat_n(warning.to_owned(), count.min(room)));
        Ok(())
    }

    /// The node forgets all prepared statements.
    pub fn forget_prepared(&mut self, node: usize) -> Result<(), ControlError> {
        self.node_mut(node)?.prepared.clear();
        Ok(())
    }

    /// Source ports of a node's shard-aware listener are rewritten from now on, or not.
    pub fn set_nat(&mut self, node: usize, nat: bool) -> Result<(), ControlError> {
        let settings = self.options.nodes.get_mut(node);
        settings
            .ok_or_else(|| ControlError(format!("no node {node}")))?
            .nat = nat;
        Ok(())
    }

    /// A node offers these tablets extensions to connections from now on, as one does that was
    /// upgraded and started again.
    pub fn set_tablets(&mut self, node: usize, mode: TabletsMode) -> Result<(), ControlError> {
        let settings = self.options.nodes.get_mut(node);
        settings
            .ok_or_else(|| ControlError(format!("no node {node}")))?
            .tablets = mode;
        Ok(())
    }

    /// Sends an event about a node to all who registered on other nodes.
    pub fn announce(&mut self, node: usize, event: NodeEvent) {
        let Some(address) = self.nodes.get(node).map(|node| node.address) else {
            return;
        };
        let kind = match event {
            NodeEvent::Up | NodeEvent::Down => EventKind::Status,
            NodeEvent::New | NodeEvent::Removed => EventKind::Topology,
        };
        for connection in self.connections.values_mut().filter(|c| c.node != node) {
            if connection.is_registered(kind) {
                connection.push_node_event(event, address);
                self.touched.push(connection.id);
            }
        }
    }
}
