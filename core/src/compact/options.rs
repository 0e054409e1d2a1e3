//! How a statement is to be run.

use core::time::Duration;

use super::request::RequestOptions;
use crate::wire::{Consistency, SerialConsistency};

/// How a statement is to be run. What is not set comes from the session's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    consistency: Option<Consistency>,
    serial_consistency: Option<SerialConsistency>,
    page_size: Option<i32>,
    timestamp: Option<i64>,
    timeout: Option<Duration>,
    is_idempotent: bool,
    is_traced: bool,
}

impl Options {
    /// As the session is set.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            consistency: None,
            serial_consistency: None,
            page_size: None,
            timestamp: None,
            timeout: None,
            is_idempotent: false,
            is_traced: false,
        }
    }

    /// How many replicas must answer.
    #[must_use]
    pub const fn with_consistency(mut self, consistency: Consistency) -> Self {
        self.consistency = Some(consistency);
        self
    }

    /// The level of the conditional part.
    #[must_use]
    pub const fn with_serial_consistency(mut self, level: SerialConsistency) -> Self {
        self.serial_consistency = Some(level);
        self
    }

    /// Rows a page; 0 lets the node send everything at once.
    #[must_use]
    pub const fn with_page_size(mut self, rows: i32) -> Self {
        self.page_size = Some(rows);
        self
    }

    /// The time of writing, in microseconds since 1970.
    #[must_use]
    pub const fn with_timestamp(mut self, micros: i64) -> Self {
        self.timestamp = Some(micros);
        self
    }

    /// The time limit of the request with all its attempts.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Running it twice does the same as running it once: it may be repeated after an error that
    /// leaves open whether it was applied.
    #[must_use]
    pub const fn idempotent(mut self) -> Self {
        self.is_idempotent = true;
        self
    }

    /// Asks the node to trace the request.
    #[must_use]
    pub const fn traced(mut self) -> Self {
        self.is_traced = true;
        self
    }

    pub(super) const fn for_request<'a>(
        &self,
        paging_state: Option<&'a [u8]>,
        is_streamed: bool,
    ) -> RequestOptions<'a> {
        RequestOptions {
            consistency: self.consistency,
            serial_consistency: self.serial_consistency,
            page_size: self.page_size,
            paging_state,
            timestamp: self.timestamp,
            timeout: self.timeout,
            is_idempotent: self.is_idempotent,
            is_traced: self.is_traced,
            is_streamed,
        }
    }
}
