//! What may go wrong on links, each drawn for itself.

use super::world::Dice;

/// Chances are in thousandths of the occasions named; 0 is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Faults {
    /// Longest delay of a chunk on its way, in microseconds, beyond the least one.
    pub jitter_micros: u64,
    /// Chunks that are cut into pieces, each on its way by itself.
    pub split: u32,
    /// Writes of which the link takes only a part.
    pub short_write: u32,
    /// Chunks that come with a reset of their link instead of their bytes.
    pub reset: u32,
    /// Chunks after which the link stays silent for a while, in both directions.
    pub stall: u32,
    /// How long such a silence lasts, in microseconds.
    pub stall_micros: u64,
    /// Connects that are refused.
    pub refuse: u32,
    /// Connects to which nobody answers.
    pub blackhole: u32,
    /// Requests that a node never answers.
    pub no_answer: u32,
    /// Connects whose wished source port is taken.
    pub port_in_use: u32,
}

impl Faults {
    /// Nothing goes wrong.
    pub const NONE: Self = Self {
        jitter_micros: 0,
        split: 0,
        short_write: 0,
        reset: 0,
        stall: 0,
        stall_micros: 0,
        refuse: 0,
        blackhole: 0,
        no_answer: 0,
        port_in_use: 0,
    };

    /// A swarm member: every kind is on or off by itself, with a strength of its own.
    pub(crate) fn drawn(dice: &mut Dice) -> Self {
        let mut chance = |max: u64| {
            let on = dice.below(2) == 1;
            let strength = u32::try_from(1 + dice.below(max)).unwrap_or(1);
            if on { strength } else { 0 }
        };
        let (split, short_write) = (chance(500), chance(500));
        let (reset, stall) = (chance(8), chance(10));
        let (refuse, blackhole) = (chance(100), chance(50));
        let (no_answer, port_in_use) = (chance(8), chance(300));
        Self {
            jitter_micros: [0, 100, 2_000, 20_000][usize::try_from(dice.below(4)).unwrap_or(0)],
            split,
            short_write,
            reset,
            stall,
            stall_micros: 50_000 + dice.below(3_000_000),
            refuse,
            blackhole,
            no_answer,
            port_in_use,
        }
    }
}
