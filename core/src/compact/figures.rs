//! What a machine tells of itself: its links, its counters, and the nodes by the numbers that answers
//! and errors name them by.

use core::net::SocketAddr;

use super::host::Host;
use super::machine::Machine;
use super::pools::find;
use crate::config::HAS_TOPOLOGY;
use crate::target::Endpoint;
use crate::words::append;

impl Machine {
    /// Where the nodes are that answers and errors name by their numbers: the members, also those that
    /// have gone and whose place is still free, and what no member was known of.
    pub fn nodes(&self) -> impl Iterator<Item = (u16, Endpoint)> {
        let members = (0..)
            .zip(self.plane.members())
            .filter_map(|(number, member)| {
                let address = SocketAddr::new(member.address()?, self.port());
                Some((number, Endpoint::Addr(address)))
            });
        members.chain((UNPLACED..).zip(self.unplaced.iter().cloned()))
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
            host.node(0, &|| link.place.clone());
            if let Some(link) = self.links.get_mut(at) {
                link.node = Some(0);
            }
            return 0;
        }
        let node = match link.member {
            Some(member) => member,
            // Where no member is known yet, the place itself has a number.
            None => {
                let known = find(&self.unplaced, &link.place);
                let at = known.unwrap_or(self.unplaced.len());
                if at == self.unplaced.len() && at < NODES_MAX {
                    append(&mut self.unplaced, link.place.clone());
                }
                UNPLACED.saturating_add(u16::try_from(at).unwrap_or(u16::MAX))
            }
        };
        host.node(node, &|| {
            let place = link.member.and_then(|member| self.member_place(member));
            place.unwrap_or_else(|| link.place.clone())
        });
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
