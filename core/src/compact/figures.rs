//! What a machine tells of itself: its links, its counters, and the nodes by the numbers that answers
//! and errors name them by.

use super::host::Host;
use super::machine::Machine;
use crate::config::HAS_TOPOLOGY;
use crate::target::Endpoint;
use crate::words::append;

impl Machine {
    /// Where the nodes are that answers and errors have named by their numbers.
    pub fn nodes(&self) -> impl Iterator<Item = (u16, &Endpoint)> {
        self.nodes.iter().map(|(number, place)| (*number, place))
    }

    /// The number of the node at the other end of a link, which the host is told for each link.
    pub(super) fn node_of(&mut self, at: usize, host: &mut impl Host) -> u16 {
        let Some(link) = self.links.get(at) else {
            return u16::MAX;
        };
        if let Some(node) = link.node {
            return node;
        }
        if !HAS_TOPOLOGY {
            // There is one link at a time, whose node is told anew each time.
            host.node(0, &link.place);
            if let Some(link) = self.links.get_mut(at) {
                link.node = Some(0);
            }
            return 0;
        }
        let member = link.member;
        let place = member.and_then(|member| self.member_place(member));
        let place = place.unwrap_or_else(|| link.place.clone());
        // Where no member is known yet, the place itself has a number.
        let known = self.nodes.iter().find(|(_, known)| *known == place);
        let next = u16::try_from(self.nodes.len()).unwrap_or(u16::MAX);
        let known = known.map_or_else(|| UNPLACED.saturating_add(next), |(number, _)| *number);
        let node = member.unwrap_or(known);
        host.node(node, &place);
        match self.nodes.iter_mut().find(|(number, _)| *number == node) {
            Some((_, told)) => *told = place,
            None if usize::from(next) < NODES_MAX => append(&mut self.nodes, (node, place)),
            None => {}
        }
        if let Some(link) = self.links.get_mut(at) {
            link.node = Some(node);
        }
        node
    }

    /// How many statements are held.
    pub const fn statement_count(&self) -> usize {
        self.statements.len()
    }

    /// How it has gone so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Links with a place, a member and a shard, and requests on them.
    pub fn links(&self) -> impl Iterator<Item = LinkStatus<'_>> {
        self.links.iter().map(|link| LinkStatus {
            link: link.number,
            place: &link.place,
            member: link.member,
            shard: link.shard(),
            serves: link.serves(),
            in_use: link
                .connection
                .as_ref()
                .map_or(0, |connection| connection.in_use()),
            orphans: link
                .connection
                .as_ref()
                .map_or(0, |connection| connection.orphans()),
        })
    }
}

/// How it has gone. The numbers go round at their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Links that were begun.
    pub connects: u32,
    /// Requests for a shard that went to a link of it.
    pub shard_reached: u32,
    /// Requests for a shard that went elsewhere.
    pub shard_missed: u32,
}

/// How it stands with a link.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LinkStatus<'a> {
    /// Its number.
    pub link: u32,
    /// Where it leads.
    pub place: &'a Endpoint,
    /// The member of the plane that it leads to.
    pub member: Option<u16>,
    /// The shard at its other end.
    pub shard: Option<u16>,
    /// Whether it takes requests.
    pub serves: bool,
    /// Stream ids in use.
    pub in_use: u16,
    /// Those of them that nobody waits for any more.
    pub orphans: u16,
}

/// Numbers of nodes that are no members' begin here.
pub const UNPLACED: u16 = 0x8000;

/// Places that answers can name.
const NODES_MAX: usize = 4096;
