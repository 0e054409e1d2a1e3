//! Store and forward for a gateway whose link comes and goes.
//!
//! A reading enters the [`Inbox`] in RAM, from an interrupt if need be, and gets its timestamp there.
//! The [`Gateway`] moves it to the [`FlashStore`], where it outlives the power, and writes it to the
//! cluster through a [`Sink`] when the link allows, oldest first and not faster than its
//! [`TokenBucket`] lets it. It leaves the flash only when the cluster has answered.
//!
//! What holds, and what the tests check by cutting the power at every single step of the flash: each
//! reading that reached the flash is written, any number of times, always with the same key and the
//! same timestamp. So the table is the same as if each had been written once, and an old reading that
//! is repeated never covers a newer one.
//!
//! No executor is chosen here, nothing is spawned, and no clock is assumed: see [`Time`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "host"))]
extern crate std;

mod batch;
mod bucket;
mod clock;
mod flash;
mod gateway;
#[cfg(feature = "host")]
pub mod host;
mod inbox;
mod ram_flash;
mod reading;
mod record;
mod session_sink;
mod sink;
mod time;

pub use batch::{BatchLimits, Entry};
pub use bucket::TokenBucket;
pub use clock::{Certainty, Dating, Stamp};
pub use flash::{FlashCounters, FlashStore, OpenError, StoreError, StoreLimits};
pub use gateway::{Gateway, GatewayCounters, GatewayOptions};
pub use inbox::{DropPolicy, Inbox, InboxCounters, Refused};
pub use ram_flash::{RamFlash, RamFlashError};
pub use reading::{Reading, TABLES};
pub use record::{PAYLOAD_MAX, Payload};
pub use session_sink::SessionSink;
pub use sink::{Sink, SinkError};
pub use time::{PlatformTime, Time};
