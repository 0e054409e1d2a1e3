//! A warm start: what a session has learned, as bytes, for the next session to begin with.
//!
//! The blob holds nodes, schema, learned tablets with their versions, prepared statements, and what
//! each node offered. It is knowledge, not truth: a session that begins with it reads the system
//! tables like any other, only later, and what has changed meanwhile costs what a change costs a
//! running session. A blob that is damaged, of another format, or from elsewhere is as good as none.
//! No password or certificate is in it; addresses, names and texts of statements are.
//!
//! Reading it is linked in only by those who make a [`WarmStart`], which carries the function.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod codec;
mod columns;
mod known;
mod restore;
mod save;
#[cfg(test)]
mod tests;

use core::fmt;

use alloc::vec::Vec;

use bytes::Bytes;

use super::engine::Engine;
use super::prepared::PreparedStatement;
use crate::config::{Config, HAS_TOPOLOGY};
use crate::conn::extensions::Offer;
use crate::sync::Shared;
use crate::target::Endpoint;
use crate::time::Instant;

pub(super) use codec::{flag, items};
pub(super) use columns::{parse_columns, put_columns};
pub use save::{Sources, save};

/// What an earlier session has saved. Put it into
/// [`Config::warm_start`](crate::config::Config::warm_start).
#[derive(Clone)]
pub struct WarmStart {
    blob: Bytes,
    restore: fn(&mut Engine, &[u8], Instant),
    recall: fn(&[u8], &Config) -> Option<Recalled>,
}

/// The part of a blob that serves a session without topology.
#[derive(Debug, Default)]
pub(super) struct Recalled {
    /// What nodes offered, by their endpoints' hashes.
    pub(super) features: Vec<(u64, Features)>,
    /// For whoever keeps statements.
    pub(super) statements: Vec<Shared<PreparedStatement>>,
}

impl WarmStart {
    /// Takes the bytes that `Session::warm_start` gave; any others are harmless.
    pub fn new(blob: impl Into<Bytes>) -> Self {
        Self {
            blob: blob.into(),
            restore: if HAS_TOPOLOGY {
                restore::restore
            } else {
                |_, _, _| {}
            },
            recall: restore::recall,
        }
    }

    /// Gives the engine what the blob knows, if it is of use.
    pub(super) fn restore(&self, engine: &mut Engine, now: Instant) {
        (self.restore)(engine, &self.blob, now);
    }

    /// What of it serves a session without topology, if it is of use.
    pub(super) fn recall(&self, config: &Config) -> Option<Recalled> {
        (self.recall)(&self.blob, config)
    }
}

impl fmt::Debug for WarmStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WarmStart({} bytes)", self.blob.len())
    }
}

/// What of a node's offer decides over STARTUP, a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Features(u8);

impl Features {
    pub(super) fn of(offer: &Offer) -> Self {
        let bits = [
            offer.lwt_mask.is_some(),
            offer.rate_limit_error.is_some(),
            offer.metadata_id,
            offer.tablets_v1,
            offer.tablets_v2,
            offer.client_options,
            speaks_version_5(offer),
        ];
        let bit = |bits: u8, (place, is_set): (u8, bool)| bits | u8::from(is_set) << place;
        Self((0..).zip(bits).fold(0, bit))
    }

    /// An offer that leads to the same STARTUP. Its numbers mean nothing: those that count come in
    /// SUPPORTED before anything is sent that depends on them.
    pub(super) fn offer(self) -> Offer {
        let has = |place: u8| self.0 & (1 << place) != 0;
        Offer {
            lwt_mask: has(0).then_some(0),
            rate_limit_error: has(1).then_some(0),
            metadata_id: has(2),
            tablets_v1: has(3),
            tablets_v2: has(4),
            client_options: has(5),
            #[cfg(any(test, feature = "protocol-v5"))]
            protocol_v5: has(6),
            ..Offer::default()
        }
    }
}

/// Whether STARTUP may rise to protocol 5.
const fn speaks_version_5(offer: &Offer) -> bool {
    #[cfg(any(test, feature = "protocol-v5"))]
    let is_offered = offer.protocol_v5 && !offer.is_scylla;
    #[cfg(not(any(test, feature = "protocol-v5")))]
    let (is_offered, _) = (false, offer);
    is_offered
}

/// A contact point, to be compared.
pub(super) fn point_hash(point: &Endpoint) -> u64 {
    codec::fnv1a(alloc::format!("{point}").as_bytes())
}
