//! What the machine wants of the platform beneath it and of the callers above it.

use bytes::BytesMut;

use crate::conn::Answer;
use crate::conn::extensions::Agreed;
use crate::error::Error;
use crate::sync::Local;
use crate::target::{Endpoint, Security, SteeringKind, Target};
use crate::wire::FrameHeader;

use super::statement::Statement;

/// Takes what a [`Machine`](super::Machine) wants done. Nothing here may call the machine; what
/// follows from it comes with the next call of `run`.
pub trait Host {
    /// Opens a link; to be answered by `handle_opened` or `handle_ended`.
    fn connect(&mut self, link: u32, target: Target);
    /// Drops a link at once; nothing more is heard of it.
    fn abort(&mut self, link: u32);
    /// Ends a link whose bytes have all been taken.
    fn close(&mut self, link: u32);
    /// How well source ports can be steered.
    fn steering(&self) -> SteeringKind {
        SteeringKind::None
    }
    /// Whether links are encrypted.
    fn security(&self) -> Security {
        Security::Plain
    }
    /// Where a node is, before answers and errors name it by its number.
    fn node(&mut self, _node: u16, _place: &dyn Fn() -> Endpoint) {}
    /// A request has ended; its number is free for others.
    fn done(&mut self, request: u32, outcome: Result<Done<'_>, Error>);
    /// Rows of a request that may be streamed begin: whether they are to come in pieces. If not
    /// they come whole, with `done`.
    fn begin(&mut self, _request: u32, _header: &FrameHeader) -> bool {
        false
    }
    /// Whether the next piece may come; asked again with each run.
    fn has_room(&mut self, _request: u32) -> bool {
        true
    }
    /// A piece of the body, without the frame's header. The request ends with `done` and an empty
    /// body.
    fn piece(&mut self, _request: u32, _bytes: BytesMut) {}
}

/// How a request has ended well.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a host must know them all")]
pub enum Done<'a> {
    /// The session takes requests, or has closed.
    Session,
    /// A statement was prepared; the machine keeps it under this number until it is released.
    Prepared(u32, &'a Local<Statement>),
    /// An answer that is no error.
    Answer(Answered<'a>),
}

/// An answer, and where it came from.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a host reads it field by field")]
pub struct Answered<'a> {
    /// The frame.
    pub answer: Answer,
    /// What its connection agreed on.
    pub agreed: &'a Agreed,
    /// What was executed, and its number.
    pub executed: Option<(u32, &'a Local<Statement>)>,
    /// Attempts that were made in all.
    pub attempts: u8,
    /// The node, by its number in the machine.
    pub node: u16,
}
