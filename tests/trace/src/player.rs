//! What a trace is replayed through: one connection, or the whole driver for small images.

use crate::connection::Player as Connection;
use crate::log::Log;
use crate::machine::Player as Machine;
use crate::step::Step;

/// One of the two; a trace whose first setting is `machine` is for the latter.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there is no third")]
#[expect(clippy::large_enum_variant, reason = "there is one of it")]
pub enum Player {
    /// A connection, its handshake, the planner.
    Connection(Connection),
    /// The machine.
    Machine(Machine),
}

impl Player {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new() -> Self {
        Self::Connection(Connection::new())
    }

    /// Takes a step and does all that follows from it.
    pub fn apply(&mut self, step: &Step<'_>, log: &mut Log) {
        if let Step::Setting("machine", words) = step {
            *self = Self::Machine(Machine::new(words));
            return;
        }
        match self {
            Self::Connection(player) => player.apply(step, log),
            Self::Machine(player) => player.apply(step, log),
        }
    }
}

impl Default for Player {
    fn default() -> Self {
        Self::new()
    }
}
