//! Why no node may be contacted at all: in words for the error of a request, which waits in vain for
//! connections then. Most often a data centre was misspelt.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::error::Quoted;
use crate::gather::Gather;
use crate::routing::{Node, Policy, View};
use crate::sorted::sort_by;

/// The reason, if nodes are known and none of them may be contacted.
#[cold]
pub(super) fn why_all_are_barred(view: &View, policy: &Policy) -> Option<String> {
    let topology = view.topology();
    let mut nodes = topology.nodes().peekable();
    nodes.peek()?;
    if nodes.any(Node::is_enabled) {
        return None;
    }
    let mut text = String::from("the policy and the host filter let no node be contacted");
    if let Some(preferred) = policy
        .preferred_dc
        .as_deref()
        .filter(|_| !policy.dc_failover)
    {
        let dcs = topology.nodes().map(|node| topology.dc_name(node.dc()));
        let mut dcs: Vec<_> = dcs.gather();
        sort_by(&mut dcs, Ord::cmp);
        dcs.dedup();
        let preferred = Quoted(preferred);
        // Writing into a text does not fail.
        let _ = write!(
            text,
            ": without dc_failover only those in {preferred}, and they are in"
        );
        for dc in dcs.into_iter().take(DCS_MAX) {
            let _ = write!(text, " {}", Quoted(dc));
        }
    }
    Some(text)
}

/// Data centres that are listed.
const DCS_MAX: usize = 8;
