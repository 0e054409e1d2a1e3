//! What the images do with the driver. Sessions come from [`Plant`]; everything else is a scenario.

#[cfg(feature = "full")]
pub mod absurd;
#[cfg(feature = "full")]
pub mod cable;
#[cfg(feature = "full")]
pub mod cost;
mod failure;
#[cfg(feature = "full")]
pub mod page;
#[cfg(feature = "full")]
pub mod pipeline;
mod plant;
pub mod readings;
#[cfg(feature = "full")]
pub mod sensors;
#[cfg(feature = "full")]
pub mod soak;

pub use failure::Failure;
pub use plant::{Plant, RX_BYTES, TX_BYTES};
