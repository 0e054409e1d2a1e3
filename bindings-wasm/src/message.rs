//! What the module tells the shell, and how it is laid out. `js/module.ts` is the other side.
//!
//! Everything is made of 32-bit little-endian words, and of byte strings: their length as a word,
//! the bytes, and zeros up to the next word. So every word stands at a multiple of four, and so
//! does every byte string. "Or none" is a word of ones.
//!
//! # Outputs
//!
//! First the time of the next tick (a double, milliseconds), then outputs: the word of an
//! [`Effect`], the word of what it concerns, and what [`Effect`] names. A condition in brackets is
//! a bit of an earlier word.
//!
//! # Requests
//!
//! The numbers of an export are its parameters; texts and values stand in the input. What is common
//! to query, execute and batch:
//!
//! - `timeout`: milliseconds, 0 for the session's;
//! - `page_size`: rows, 0 for the session's, or none for everything at once;
//! - `flags`: see [`RunOptions`](crate::options::RunOptions);
//! - `paging_len`: bytes of paging state at the front of the input, behind the timestamp if the
//!   flags say that one is there.
//!
//! Behind these come the text (query), or the values (execute): for each a big-endian length, -1
//! for null and -2 for unset, and its bytes. A batch has for each statement the word of the prepared
//! statement, the number of values and a byte string of the values; or none, 0 and the text.
//!
//! # Results
//!
//! Cells are copied as CQL has them, row by row: a big-endian length (negative for null) and the
//! bytes. Nobody has walked them: JavaScript does when it is asked for a value, and finds out then if
//! they end too early; there are at least four bytes for each. Columns are told once for a prepared statement and again when they change:
//! others that came since mean those told last under its number.

use messina_core::error::{LinkError, LinkErrorKind};

/// What the shell is told. After the word come the words and byte strings named here.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Effect {
    /// Open a link: link; host, port, wished shard or none, number of shards, source port or 0.
    Connect = 1,
    /// Send bytes: link; bytes.
    Send = 2,
    /// Close a link when everything is sent: link.
    Close = 3,
    /// Close a link at once: link.
    Abort = 4,
    /// A request has ended well and brought nothing: request.
    Done = 5,
    /// A statement is prepared: request; statement, bits (1 conditional, 2 token aware), columns
    /// of the markers.
    Prepared = 6,
    /// A statement was run: request; bits ([`ResultBits`](ResultBits)), node, shard
    /// or none, statement or none, \[columns\], \[paging state\], \[warnings: number, texts\],
    /// \[trace id: 16 bytes\], \[rows: number, cells\].
    Result = 7,
    /// A request failed: request; kind, code, bits (1 may have been applied, 2 transient), node or
    /// none, shard or none, attempts, message, facts: number, then for each its name and a tag: 0
    /// and a signed word, 1 and a text, 2 and a word that is 0 or 1.
    Failed = 8,
    /// Where a node is, told before it is first named: node; text.
    Node = 9,
}

/// What a result has; the attempts stand in the lowest byte.
#[derive(Debug)]
pub(crate) struct ResultBits;

impl ResultBits {
    /// Rows came, be it none.
    pub(crate) const ROWS: u32 = 1 << 8;
    /// The columns follow; otherwise they are those told last for the statement.
    pub(crate) const COLUMNS: u32 = 1 << 9;
    pub(crate) const PAGING: u32 = 1 << 10;
    pub(crate) const WARNINGS: u32 = 1 << 11;
    /// It was conditional.
    pub(crate) const CONDITIONAL: u32 = 1 << 12;
    /// It was conditional and applied.
    pub(crate) const APPLIED: u32 = 1 << 13;
    pub(crate) const TRACED: u32 = 1 << 14;
}

/// Why a link failed, in the order of `LINK_ERRORS` of `js/module.ts`.
const LINK_ERRORS: [LinkError; 8] = [
    LinkError::new(LinkErrorKind::Other),
    LinkError::new(LinkErrorKind::Resolve),
    LinkError::new(LinkErrorKind::Refused),
    LinkError::new(LinkErrorKind::Reset),
    LinkError::new(LinkErrorKind::Unreachable),
    LinkError::new(LinkErrorKind::TimedOut),
    LinkError::new(LinkErrorKind::Tls),
    LinkError::said(
        LinkErrorKind::Refused,
        FORBIDDEN,
        "not allowed by the relay",
    ),
];

/// By this code a relay closes what leads to a target that it does not allow.
pub(crate) const FORBIDDEN: u16 = 4006;

/// Why a link failed, by its number; one that is not known is a failure without a name.
pub(crate) fn link_error(number: usize) -> LinkError {
    let error = LINK_ERRORS.get(number).copied();
    error.unwrap_or(LinkError::new(LinkErrorKind::Other))
}

/// Input that may stay for the next request; the shell knows it.
pub(crate) const INPUT_KEPT_MAX: usize = 64 << 10;
