//! Replicas of tables without tablets, found by walking the ring for each request.
//!
//! The rules are those of [`crate::routing`]: a token belongs to the first node token that is not below
//! it; `SimpleStrategy` takes the next distinct nodes, `NetworkTopologyStrategy` the factor of
//! each data centre, and there a node of a rack already seen only as often as racks are missing.
//! Kept are the tokens with their owners and the size of each data centre.

use super::members::{Cluster, Member};
use super::planning::Located;
use super::tablets::REPLICAS_MAX;
use super::{Plane, TableKey, Vec};

use crate::digits::number;
use crate::routing::{ShardMap, Token};
use crate::sorted::sort_by;
use crate::wire::Reader;

/// The tokens of all members.
#[derive(Debug, Default)]
pub(super) struct Ring {
    /// Sorted, with the owner of each.
    tokens: Vec<(i64, u16)>,
    /// Those of the reading under way.
    next: Vec<(i64, u16)>,
    places: Vec<Place>,
}

/// A data centre, by the number of its name.
#[derive(Clone, Copy, Debug)]
struct Place {
    dc: u16,
    /// Members that own tokens.
    members: usize,
    /// Racks of these.
    racks: usize,
}

/// What a data centre may still take on a walk.
#[derive(Clone, Copy)]
struct Share {
    dc: u16,
    replicas: usize,
    rack_repeats: usize,
}

/// Data centres that hold replicas of one keyspace; what would be more is not routed.
const SHARES_MAX: usize = REPLICAS_MAX;

impl Ring {
    pub(super) fn begin(&mut self) {
        self.next = Vec::new();
    }

    /// The tokens of a member: a set of texts. Other partitioners have tokens that are no 64-bit
    /// numbers; such rings are not routed by.
    pub(super) fn put(&mut self, member: u16, tokens: Option<&[u8]>) {
        let mut reader = Reader::new(tokens.unwrap_or_default());
        let left = reader.count("tokens").unwrap_or(0);
        for _ in 0..left {
            let Ok(Some(token)) = reader.bytes("token") else {
                return;
            };
            let token = core::str::from_utf8(token).ok();
            if let Some(token) = token.and_then(parse_token) {
                self.next.push((token, member));
            }
        }
    }

    #[cfg(test)]
    pub(super) fn put_all(&mut self, member: u16, tokens: &[i64]) {
        self.next
            .extend(tokens.iter().map(|&token| (token, member)));
    }

    /// The reading has ended. If two members claim one token the lower number has it.
    pub(super) fn end(&mut self, cluster: &Cluster) {
        self.tokens = core::mem::take(&mut self.next);
        sort_by(&mut self.tokens, Ord::cmp);
        self.tokens.dedup_by_key(|entry| entry.0);
        self.places.clear();
        let mut owns = alloc::vec![false; cluster.members.len()];
        for &(_, owner) in &self.tokens {
            if let Some(owns) = owns.get_mut(usize::from(owner)) {
                *owns = true;
            }
        }
        // A member may have tokens and still own nothing: others claim them too.
        let owners = || cluster.members.iter().zip(&owns).filter(|(_, owns)| **owns);
        for (at, (member, _)) in owners().enumerate() {
            let (dc, rack) = member.place();
            let is_new_rack = owners()
                .take(at)
                .all(|(before, _)| before.place() != (dc, rack));
            let known = self.places.iter_mut().find(|place| place.dc == dc);
            let racks = usize::from(is_new_rack);
            match known {
                Some(place) => {
                    place.members = place.members.saturating_add(1);
                    place.racks = place.racks.saturating_add(racks);
                }
                None => self.places.push(Place {
                    dc,
                    members: 1,
                    racks,
                }),
            }
        }
    }

    /// The owners of tokens from this one on, once round.
    fn walk(&self, token: Token) -> impl Iterator<Item = u16> {
        let place = self.tokens.partition_point(|&(end, _)| end < token.value());
        let (before, after) = self.tokens.split_at_checked(place).unwrap_or_default();
        after.iter().chain(before).map(|&(_, owner)| owner)
    }
}

/// How a keyspace places its replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// It was not read yet, or in a way that tokens do not tell.
    None,
    /// On so many distinct nodes.
    Simple(u16),
    /// So many in each data centre, by the number of its name.
    Network(Vec<(u16, u16)>),
}

/// A factor, or "all/transient", of which all hold data.
fn parse_factor(value: &str) -> Option<u16> {
    let end = value.bytes().position(|byte| byte == b'/');
    number(value.get(..end.unwrap_or(value.len()))?)
}

fn parse_token(text: &str) -> Option<i64> {
    text.parse().ok()
}

impl Plane {
    /// The strategy that a `replication` map names: pairs of text.
    pub(super) fn read_strategy(&mut self, options: &[u8]) -> Strategy {
        let mut reader = Reader::new(options);
        let left = reader.count("options").unwrap_or(0);
        let (mut class, mut simple) = ("", None);
        let mut factors = Some(Vec::new());
        for _ in 0..left {
            let mut text = || core::str::from_utf8(reader.bytes("option").ok()??).ok();
            let (Some(name), Some(value)) = (text(), text()) else {
                return Strategy::None;
            };
            let factor = parse_factor(value);
            match name {
                "class" => class = value,
                // Beside data centres it is a shorthand that the server has expanded.
                "replication_factor" => simple = factor,
                dc => {
                    let dc = self.cluster.intern(dc, usize::from(self.limits.members));
                    match (factor, &mut factors) {
                        (Some(factor), Some(factors)) => factors.push((dc, factor)),
                        _ => factors = None,
                    }
                }
            }
        }
        let strategy = if class.ends_with("NetworkTopologyStrategy") {
            factors.map(Strategy::Network)
        } else if class.ends_with("SimpleStrategy") {
            simple.map(Strategy::Simple)
        } else {
            None
        };
        strategy.unwrap_or(Strategy::None)
    }

    /// The replicas of a token of a table without tablets.
    pub(super) fn locate_on_ring(&self, table: TableKey, token: Token, located: &mut Located) {
        let keyspace = self.keyspace_of(table);
        let mut shares = heapless::Vec::<Share, SHARES_MAX>::new();
        let mut left = match keyspace.map(|keyspace| &keyspace.strategy) {
            Some(Strategy::Simple(factor)) => usize::from(*factor),
            Some(Strategy::Network(factors)) => self.put_shares(factors, &mut shares),
            _ => 0,
        };
        let is_simple = shares.is_empty();
        for owner in self.ring.walk(token) {
            if left == 0 {
                break;
            }
            if located.replicas.iter().any(|&(member, _)| member == owner) {
                continue;
            }
            let Some(member) = self.member(owner) else {
                continue;
            };
            if is_simple || self.takes(member, &mut shares, located) {
                left = left.saturating_sub(1);
                let shard = member.sharding().map(|map: ShardMap| map.shard_of(token));
                if located.replicas.push((owner, shard)).is_err() {
                    break;
                }
            }
        }
    }

    /// What each data centre takes, and all together.
    fn put_shares(
        &self,
        factors: &[(u16, u16)],
        shares: &mut heapless::Vec<Share, SHARES_MAX>,
    ) -> usize {
        let mut all = 0_usize;
        for place in &self.ring.places {
            // All names that do not fit have the same number.
            let is_it = |factor: &&(u16, u16)| factor.0 == place.dc && place.dc != u16::MAX;
            let Some((_, factor)) = factors.iter().find(is_it) else {
                continue;
            };
            let factor = usize::from(*factor);
            let replicas = factor.min(place.members);
            let share = Share {
                dc: place.dc,
                replicas,
                rack_repeats: factor.saturating_sub(place.racks),
            };
            if shares.push(share).is_ok() {
                all = all.saturating_add(replicas);
            }
        }
        all
    }

    /// Whether the next owner on a walk is a replica of its data centre.
    fn takes(&self, member: &Member, shares: &mut [Share], located: &Located) -> bool {
        let place = member.place();
        let Some(share) = shares.iter_mut().find(|share| share.dc == place.0) else {
            return false;
        };
        let same_rack = |&(taken, _): &(u16, _)| {
            self.member(taken)
                .is_some_and(|taken| taken.place() == place)
        };
        if share.replicas == 0 {
            return false;
        }
        if located.replicas.iter().any(same_rack) {
            let Some(repeats) = share.rack_repeats.checked_sub(1) else {
                return false;
            };
            share.rack_repeats = repeats;
        }
        share.replicas = share.replicas.saturating_sub(1);
        true
    }
}
