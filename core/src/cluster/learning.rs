//! What a tablet that came with an answer means: most often it is stored and that is all.
//!
//! Whoever read the answer calls [`learn`], so that its next request is routed by the tablet; the
//! control plane hears only of what it has to act on.

use crate::routing::{LearnedReplica, LearnedTablet, PayloadError, TableRef, TabletStore, View};

/// What the control plane must hear of a tablet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TabletNews {
    /// It was stored, and names a host that is not known.
    UnknownHost,
    /// It cannot be read.
    Refused(PayloadError),
}

/// Stores a tablet as it was read from the answer to a statement on `table`.
pub fn learn(
    tablets: &TabletStore,
    view: &View,
    table: TableRef,
    read: Result<LearnedTablet, PayloadError>,
) -> Option<TabletNews> {
    let learned = match read {
        Ok(learned) => learned,
        Err(error) => return Some(TabletNews::Refused(error)),
    };
    let is_stored = tablets.learn(view, table, &learned).is_stored();
    let topology = view.topology();
    let is_unknown = |replica: &LearnedReplica| topology.node_by_host_id(replica.host_id).is_none();
    (is_stored && learned.replicas().iter().any(is_unknown)).then_some(TabletNews::UnknownHost)
}
