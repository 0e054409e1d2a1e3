//! The world around a gateway, on the host: a cluster, links that come and go, a flash that loses its
//! power, sensors, and a model of what the table must hold.
//!
//! Time is virtual and runs from a seed, so a run takes milliseconds and repeats exactly.

mod chip;
mod model;
mod scene;
mod time;

pub use chip::{Chip, ChipError, ChipStats, Cut, Flash, Tear};
pub use model::{Fate, Model, Taken};
pub use scene::{Board, Cycle, Link, Scene};
pub use time::SimTime;
