//! What callers hand to a session: texts, prepared statements, and how they are to be run.

use alloc::borrow::Cow;
use core::time::Duration;

use crate::cluster::prepared::PreparedStatement;
use crate::exec::paging::PagingState;
use crate::sync::Shared;
use crate::types::ColumnSpec;
use crate::wire::{Consistency, SerialConsistency};

/// How a statement is to be run. What is not set comes from the session's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatementOptions {
    /// How many replicas must answer.
    pub consistency: Option<Consistency>,
    /// The level of the conditional part.
    pub serial_consistency: Option<SerialConsistency>,
    /// Rows a page; `Some(0)` lets the server send everything at once.
    pub page_size: Option<i32>,
    /// Where to begin reading.
    pub paging_state: Option<PagingState>,
    /// The time limit of the request with all its attempts.
    pub timeout: Option<Duration>,
    /// The write's timestamp in microseconds.
    pub timestamp: Option<i64>,
    /// The keyspace of names that have none in the text, instead of the session's. Refused where
    /// protocol 5 is not spoken; means nothing to a statement that is prepared already.
    pub keyspace: Option<Shared<str>>,
    /// What the node takes for the time, in seconds since 1970, where it decides whether something has
    /// expired or when it will. Refused where protocol 5 is not spoken.
    pub now_in_seconds: Option<i32>,
    /// Running it twice does the same as running it once: it may be repeated after an error that
    /// leaves open whether it was applied.
    pub is_idempotent: bool,
    /// Asks the server to trace the request.
    pub is_traced: bool,
    /// The only node or shard it may go to.
    #[cfg(feature = "targeting")]
    pub target: Option<super::targeting::StatementTarget>,
}

macro_rules! option_setters {
    () => {
        /// Sets how many replicas must answer.
        #[must_use]
        pub const fn with_consistency(mut self, consistency: Consistency) -> Self {
            self.options.consistency = Some(consistency);
            self
        }

        /// Sets the level of the conditional part.
        #[must_use]
        pub const fn with_serial_consistency(mut self, level: SerialConsistency) -> Self {
            self.options.serial_consistency = Some(level);
            self
        }

        /// Sets the time limit of the request with all its attempts.
        #[must_use]
        pub const fn with_timeout(mut self, timeout: Duration) -> Self {
            self.options.timeout = Some(timeout);
            self
        }

        /// Sets the write's timestamp in microseconds.
        #[must_use]
        pub const fn with_timestamp(mut self, micros: i64) -> Self {
            self.options.timestamp = Some(micros);
            self
        }

        /// Sets what the node takes for the time, in seconds since 1970: what has expired by then is
        /// gone, and what expires counts from then.
        ///
        /// Fails with [`EncodeFailure::Request`](crate::error::EncodeFailure::Request) before anything is
        /// sent where protocol 5 is not spoken.
        #[must_use]
        pub const fn with_now_in_seconds(mut self, seconds: i32) -> Self {
            self.options.now_in_seconds = Some(seconds);
            self
        }

        /// Says that running it twice does the same as running it once.
        #[must_use]
        pub const fn idempotent(mut self) -> Self {
            self.options.is_idempotent = true;
            self
        }

        /// Asks the server to trace the request.
        #[must_use]
        pub const fn traced(mut self) -> Self {
            self.options.is_traced = true;
            self
        }

        /// Sends it to this node or shard and nowhere else.
        #[cfg(feature = "targeting")]
        #[must_use]
        pub const fn with_target(
            mut self,
            target: $crate::drive::targeting::StatementTarget,
        ) -> Self {
            self.options.target = Some(target);
            self
        }

        /// How it is to be run.
        pub const fn options(&self) -> &StatementOptions {
            &self.options
        }
    };
}

pub(super) use option_setters;

macro_rules! keyspace_setter {
    () => {
        /// Sets the keyspace of names that have none in the text, instead of the session's.
        ///
        /// Fails with [`EncodeFailure::Request`](crate::error::EncodeFailure::Request) before anything is
        /// sent where protocol 5 is not spoken.
        #[must_use]
        pub fn with_keyspace(mut self, keyspace: &str) -> Self {
            self.options.keyspace = Some($crate::drive::statement::shared_str(keyspace));
            self
        }
    };
}

pub(super) use keyspace_setter;

pub(super) fn shared_str(text: &str) -> Shared<str> {
    Shared::from(text)
}

macro_rules! paging_setters {
    () => {
        /// Sets the rows a page; 0 lets the server send everything at once.
        #[must_use]
        pub const fn with_page_size(mut self, rows: i32) -> Self {
            self.options.page_size = Some(rows);
            self
        }

        /// Begins reading where an earlier page ended.
        #[must_use]
        pub fn with_paging_state(mut self, state: Option<PagingState>) -> Self {
            self.options.paging_state = state;
            self
        }
    };
}

/// A statement by its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    text: Cow<'a, str>,
    options: StatementOptions,
}

impl<'a> Statement<'a> {
    /// A statement with the session's settings.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            text: text.into(),
            options: StatementOptions::default(),
        }
    }

    #[cfg(feature = "lwt-learning")]
    pub(super) fn with_options(text: impl Into<Cow<'a, str>>, options: StatementOptions) -> Self {
        Self {
            text: text.into(),
            options,
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    option_setters!();
    keyspace_setter!();
    paging_setters!();
}

impl<'a> From<&'a str> for Statement<'a> {
    fn from(text: &'a str) -> Self {
        Self::new(text)
    }
}

impl From<alloc::string::String> for Statement<'_> {
    fn from(text: alloc::string::String) -> Self {
        Self::new(text)
    }
}

/// A statement that was prepared. Cheap to clone; clones share what the server told, but each has
/// options of its own.
#[derive(Clone, Debug)]
pub struct Prepared {
    inner: Shared<PreparedStatement>,
    options: StatementOptions,
}

impl Prepared {
    pub(super) fn new(inner: Shared<PreparedStatement>, options: StatementOptions) -> Self {
        Self { inner, options }
    }

    pub(super) fn inner(&self) -> &PreparedStatement {
        &self.inner
    }

    pub(super) const fn shared(&self) -> &Shared<PreparedStatement> {
        &self.inner
    }

    /// The statement's text.
    pub fn text(&self) -> &str {
        self.inner.text()
    }

    /// The bind markers.
    pub fn markers(&self) -> &[ColumnSpec] {
        self.inner.markers()
    }

    /// Whether the server marked it as conditional.
    pub fn is_lwt(&self) -> bool {
        self.inner.is_lwt()
    }

    /// Whether the server routes it by its bound values: the whole partition key is among them.
    pub fn is_token_aware(&self) -> bool {
        !self.inner.key_indexes().is_empty()
    }

    option_setters!();
    paging_setters!();
}
