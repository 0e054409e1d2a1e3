//! How a wished shard is reached where source ports cannot be chosen: ports are drawn until one
//! belongs to the shard. Nothing is assumed of the allocator; only the number of draws depends on
//! it: one that counts up needs at most as many as there are shards, one that gives random ports a
//! few times as many. One that never gives a port of the shard costs a bounded number of draws, the
//! connection goes out from the last port, and the miss is counted.

use core::num::NonZeroU16;

/// Draws for each shard of the node before the wish is given up. An allocator that counts up needs
/// one, and its wrap-around at most another.
const DRAWS_PER_SHARD: u32 = 4;

/// Draws at most. A draw is a few hundred instructions.
const DRAWS_MAX: u32 = 1_024;

/// A connection should come from a port that is `shard` modulo `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardWish {
    pub(crate) shard: u16,
    pub(crate) of: NonZeroU16,
}

/// What became of wishes for a shard, since the pool was made; wraps around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SteeringCounts {
    /// Connects that wished for a shard.
    pub wished: u32,
    /// Of these, the ones that no port of the shard was found for. They went out from another one,
    /// so the node's SUPPORTED names another shard.
    pub missed: u32,
    /// Source ports that were drawn for them.
    pub drawn: u32,
}

impl SteeringCounts {
    /// Draws ports until one belongs to the wished shard; the last one drawn is the connection's.
    pub(crate) fn lead<E>(
        &mut self,
        wish: ShardWish,
        mut draw: impl FnMut() -> Result<u16, E>,
    ) -> Result<(), E> {
        self.wished = self.wished.wrapping_add(1);
        let draws_max = u32::from(wish.of.get()).saturating_mul(DRAWS_PER_SHARD);
        for _ in 0..draws_max.min(DRAWS_MAX) {
            self.drawn = self.drawn.wrapping_add(1);
            if draw()? % wish.of == wish.shard {
                return Ok(());
            }
        }
        self.missed = self.missed.wrapping_add(1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;

    use super::*;

    fn wish(shard: u16, of: u16) -> ShardWish {
        let of = NonZeroU16::new(of).unwrap();
        ShardWish { shard, of }
    }

    /// Leads to each shard in turn; gives the counts and the ports of the connections.
    fn lead_to_all(of: u16, mut allocator: impl FnMut() -> u16) -> (SteeringCounts, Vec<u16>) {
        let mut counts = SteeringCounts::default();
        let ports = (0..of).map(|shard| {
            let mut last = 0;
            let draw = || {
                last = allocator();
                Ok::<_, Infallible>(last)
            };
            counts.lead(wish(shard, of), draw).unwrap();
            last
        });
        let ports = ports.collect();
        (counts, ports)
    }

    fn counting_from(start: u16) -> impl FnMut() -> u16 {
        let mut next = start;
        move || {
            let port = next;
            next = if port == u16::MAX { 1_025 } else { port + 1 };
            port
        }
    }

    #[test]
    fn an_allocator_that_counts_needs_at_most_a_port_for_each_shard() {
        for of in [1, 2, 3, 7, 14, 64, 255] {
            let (counts, ports) = lead_to_all(of, counting_from(4_000));
            assert!(
                ports
                    .iter()
                    .zip(0..)
                    .all(|(port, shard)| port % of == shard)
            );
            // The shards are asked for in the order of the ports, so only the first one is far.
            assert!(counts.drawn <= 2 * u32::from(of), "{counts:?}");
            assert_eq!((counts.wished, counts.missed), (u32::from(of), 0));
        }
    }

    #[test]
    fn the_wrap_around_costs_no_miss() {
        for of in [2, 3, 14, 100] {
            for start in 65_400..=65_535 {
                let (counts, ports) = lead_to_all(of, counting_from(start));
                assert!(
                    ports
                        .iter()
                        .zip(0..)
                        .all(|(port, shard)| port % of == shard)
                );
                assert_eq!(counts.missed, 0);
            }
        }
    }

    #[test]
    fn an_allocator_that_draws_by_lot_is_led_as_well() {
        let mut state = 1_u64;
        let mut total = SteeringCounts::default();
        for _ in 0..200 {
            let (counts, ports) = lead_to_all(14, || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                1_025 + ((state >> 33) % 64_511) as u16
            });
            let hits = ports
                .iter()
                .zip(0..)
                .filter(|&(port, shard)| port % 14 == shard);
            assert_eq!(hits.count() as u32, counts.wished - counts.missed);
            total.wished += counts.wished;
            total.missed += counts.missed;
        }
        // (13/14)^56 is 1.6 %.
        assert!(total.missed * 100 < total.wished * 3, "{total:?}");
    }

    #[test]
    fn an_allocator_that_does_not_play_along_ends_in_counted_misses() {
        // Always the same port, and only even ports where shards are an even number.
        for step in [0, 2] {
            let mut port = 5_000_u16;
            let (counts, ports) = lead_to_all(4, || {
                port += step;
                port
            });
            assert_eq!(ports.len(), 4, "each has a port all the same");
            let reached = if step == 0 { 1 } else { 2 };
            assert_eq!(counts.missed, 4 - reached);
        }
    }

    #[test]
    fn draws_are_bounded_and_a_failed_draw_ends_them() {
        let mut counts = SteeringCounts::default();
        counts
            .lead(wish(60_000, 60_001), || Ok::<_, ()>(1))
            .unwrap();
        assert_eq!((counts.drawn, counts.missed), (DRAWS_MAX, 1));
        assert_eq!(counts.lead(wish(0, 3), || Err("no route")), Err("no route"));
        assert_eq!((counts.drawn, counts.missed), (DRAWS_MAX + 1, 1));
    }
}
