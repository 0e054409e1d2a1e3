//! What the images do with the driver. Sessions come from [`Plant`]; everything else is a scenario.

pub mod absurd;
pub mod cable;
pub mod cost;
mod failure;
pub mod page;
pub mod pipeline;
mod plant;
pub mod readings;
pub mod sensors;
pub mod soak;

pub use failure::Failure;
pub use plant::{Plant, RX_BYTES, TX_BYTES};
