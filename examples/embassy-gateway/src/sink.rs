//! Where batches go: the few calls that a gateway makes to a driver.

use core::future::Future;

use messina_core::time::UnixMicros;

use crate::batch::Entry;

/// Writes readings to a cluster.
pub trait Sink {
    /// Writes all of them with their own timestamps; `Ok` when the cluster has answered for all.
    /// After an error any of them may have been written. Dropping the future is an error like any
    /// other.
    fn write(&mut self, entries: &[Entry]) -> impl Future<Output = Result<(), SinkError>>;

    /// The cluster's clock, for boards that have none.
    fn wall_clock(&mut self) -> impl Future<Output = Result<UnixMicros, SinkError>>;
}

/// Why readings were not written, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkError {
    /// The cluster does not want them as they are: to send them again is no use.
    pub is_refused: bool,
    /// They may have been written all the same.
    pub may_have_been_applied: bool,
    /// The session is over: another is needed.
    pub is_over: bool,
}

impl SinkError {
    /// An error that may pass.
    pub const TRANSIENT: Self = Self {
        is_refused: false,
        may_have_been_applied: false,
        is_over: false,
    };

    /// Readings that the cluster does not want.
    pub const REFUSED: Self = Self {
        is_refused: true,
        ..Self::TRANSIENT
    };

    /// Readings that were not written, for their session is over.
    pub const OVER: Self = Self {
        is_over: true,
        ..Self::TRANSIENT
    };

    /// The same, for readings that may have been written all the same.
    #[must_use]
    pub const fn uncertain(mut self) -> Self {
        self.may_have_been_applied = true;
        self
    }
}
