//! The vnode ring and replica placement of keyspaces without tablets.

use std::collections::BTreeSet;

use super::schema::Replication;
use super::tablets::drawn;

/// Where a node stands.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) datacenter: String,
    pub(crate) rack: String,
    pub(crate) zero_token: bool,
}

/// Tokens of all nodes, sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    entries: Vec<(i64, usize)>,
}

impl Ring {
    pub(crate) fn new(seed: u64, places: &[Place], vnodes: u32) -> Self {
        let mut entries: Vec<(i64, usize)> = places
            .iter()
            .enumerate()
            .filter(|(_, place)| !place.zero_token)
            .flat_map(|(node, _)| {
                (0..vnodes).map(move |i| {
                    let at = (node as u64) << 32 | u64::from(i);
                    (
                        drawn(seed, "vnode", at).cast_signed().max(i64::MIN + 1),
                        node,
                    )
                })
            })
            .collect();
        entries.sort_unstable();
        entries.dedup_by_key(|(token, _)| *token);
        Self { entries }
    }

    pub(crate) fn tokens_of(&self, node: usize) -> Vec<i64> {
        self.entries
            .iter()
            .filter(|(_, owner)| *owner == node)
            .map(|(token, _)| *token)
            .collect()
    }

    /// Nodes that hold `token`, primary first.
    pub(crate) fn replicas(
        &self,
        token: i64,
        replication: &Replication,
        places: &[Place],
    ) -> Vec<usize> {
        match replication {
            Replication::Local => Vec::new(),
            Replication::Simple { factor } => self.simple(token, *factor),
            Replication::NetworkTopology { factors } => {
                let mut found = Vec::new();
                for (datacenter, factor) in factors {
                    self.in_datacenter(token, datacenter, *factor, places, &mut found);
                }
                found.sort_by_key(|(order, _)| *order);
                found.into_iter().map(|(_, node)| node).collect()
            }
        }
    }

    /// Owners from the token on, once around.
    fn walk(&self, token: i64) -> impl Iterator<Item = usize> + '_ {
        let start = self.entries.partition_point(|(t, _)| *t < token);
        let (before, after) = self.entries.split_at(start);
        after.iter().chain(before).map(|(_, node)| *node)
    }

    fn simple(&self, token: i64, factor: u32) -> Vec<usize> {
        let mut nodes = Vec::new();
        for node in self.walk(token) {
            if nodes.len() >= factor as usize {
                break;
            }
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        nodes
    }

    /// A rack repeats only as often as there are fewer racks than copies.
    fn in_datacenter(
        &self,
        token: i64,
        datacenter: &str,
        factor: u32,
        places: &[Place],
        found: &mut Vec<(usize, usize)>,
    ) {
        let members = |node: &usize| {
            places
                .get(*node)
                .is_some_and(|place| place.datacenter == datacenter)
        };
        let racks: BTreeSet<&str> = places
            .iter()
            .filter(|place| place.datacenter == datacenter && !place.zero_token)
            .map(|place| place.rack.as_str())
            .collect();
        let mut left = factor as usize;
        let mut repeats = left.saturating_sub(racks.len());
        let mut seen_racks = BTreeSet::new();
        let mut chosen = Vec::new();
        for (order, node) in self
            .walk(token)
            .enumerate()
            .filter(|(_, node)| members(node))
        {
            if left == 0 {
                break;
            }
            if chosen.contains(&node) {
                continue;
            }
            if !seen_racks.insert(places[node].rack.as_str()) {
                if repeats == 0 {
                    continue;
                }
                repeats -= 1;
            }
            left -= 1;
            chosen.push(node);
            found.push((order, node));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(racks: &[(&str, &str)]) -> Vec<Place> {
        racks
            .iter()
            .map(|(datacenter, rack)| Place {
                datacenter: (*datacenter).to_owned(),
                rack: (*rack).to_owned(),
                zero_token: false,
            })
            .collect()
    }

    fn ring(entries: &[(i64, usize)]) -> Ring {
        Ring {
            entries: entries.to_vec(),
        }
    }

    #[test]
    fn simple_strategy_takes_distinct_owners_clockwise() {
        let ring = ring(&[(0, 0), (10, 0), (20, 1), (30, 2)]);
        let at = |token, factor| ring.replicas(token, &Replication::Simple { factor }, &[]);
        assert_eq!(
            at(0, 2),
            [0, 1],
            "a token belongs to the first entry not below it"
        );
        assert_eq!(at(11, 2), [1, 2]);
        assert_eq!(at(31, 3), [0, 1, 2], "wraps");
        assert_eq!(at(5, 9), [0, 1, 2], "no more copies than nodes");
    }

    #[test]
    fn topology_strategy_spreads_over_racks() {
        let places = places(&[("a", "r1"), ("a", "r1"), ("a", "r2"), ("b", "r1")]);
        let ring = ring(&[(0, 0), (10, 1), (20, 2), (30, 3)]);
        let at = |factors: &[(&str, u32)]| {
            let factors = factors
                .iter()
                .map(|(dc, n)| ((*dc).to_owned(), *n))
                .collect();
            ring.replicas(0, &Replication::NetworkTopology { factors }, &places)
        };
        assert_eq!(at(&[("a", 2)]), [0, 2], "second node of r1 is skipped");
        assert_eq!(at(&[("a", 3)]), [0, 1, 2], "one repeat allowed");
        assert_eq!(at(&[("a", 1), ("b", 1)]), [0, 3]);
    }
}
