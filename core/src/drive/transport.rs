//! What a platform gives to the driver: links, timers, a clock, name resolution. Nothing else.
//!
//! The traits are poll-style, so no future of a transport ever holds progress in the byte path:
//! dropping anything at any time loses nothing. Spawning is not part of them: the driver yields
//! connection tasks and the platform runs these where it likes; `Send` is therefore inferred at
//! the concrete type and never asked for here.
//!
//! `testing::link_contract` (feature `test-util`) checks the contracts written below.

use core::future::Future;
use core::num::NonZeroU16;
use core::task::{Context, Poll};

use bytes::BytesMut;

use crate::error::LinkError;
use crate::time::{Instant, UnixMicros};

pub use crate::target::{
    Endpoint, Name, RESOLVED_MAX, Resolved, Security, Steering, SteeringKind, Target,
};

/// A platform.
pub trait Transport {
    /// An open byte stream.
    type Link: Link + Unpin;
    /// A timer that can be armed again and again.
    type Timer: Timer + Unpin;
    /// The clock.
    type Clock: Clock + Unpin;
    /// A connect under way; dropping it abandons the attempt.
    type Connecting: Future<Output = Result<Self::Link, LinkError>> + Unpin;
    /// A look-up under way.
    type Resolving: Future<Output = Result<Resolved, LinkError>> + Unpin;

    /// Whether names can be looked up at all. Where they cannot, a contact point that is a name fails,
    /// and sessions of [`compact`](crate::compact) carry no code for the addresses of one.
    const RESOLVES: bool = true;

    /// Looks a name up.
    fn resolve(&self, name: &Name) -> Self::Resolving;

    /// Opens a link, TLS included. May fail with [`LinkError::PORT_IN_USE`], quickly and without
    /// side effects, when [`Steering::Port`] asked for a taken port.
    fn connect(&self, target: Target) -> Self::Connecting;

    /// How well source ports can be steered; may differ between instances of one type.
    fn steering(&self) -> SteeringKind {
        SteeringKind::None
    }

    /// Whether links are encrypted.
    fn security(&self) -> Security {
        Security::Plain
    }

    /// A new timer, not armed.
    fn timer(&self) -> Self::Timer;

    /// A clock that may be kept when the transport is gone.
    fn clock(&self) -> Self::Clock;
}

/// The platform's clocks.
pub trait Clock: Send + Sync + 'static {
    /// Monotonic time.
    fn now(&self) -> Instant;

    /// Wall-clock time, where there is one; the source of client timestamps.
    fn wall_clock(&self) -> Option<UnixMicros> {
        None
    }
}

/// An open byte stream.
///
/// Contract, for all methods: `Pending` has registered the waker; both directions may be pending
/// at once on the same waker; errors are sticky. Dropping a link aborts it.
pub trait Link {
    /// Reads some bytes. The caller guarantees spare capacity of at least one byte; the link
    /// appends at most the spare capacity, or *replaces* an empty buffer by a filled one of its
    /// own. `Ok(0)` means that the peer has closed, in the middle of a frame or not.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, LinkError>>;

    /// Takes some of `bytes`, which are never empty. Short writes are normal; `Ok(0)` is treated
    /// as an error, never as a reason to try again.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, LinkError>>;

    /// Takes some of `parts` in order. Provided: writes from the first part that is not empty; the
    /// caller offers at least one.
    fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[&[u8]],
    ) -> Poll<Result<usize, LinkError>> {
        match parts.iter().find(|part| !part.is_empty()) {
            Some(part) => self.poll_write(cx, part),
            None => Poll::Ready(Ok(0)),
        }
    }

    /// Hands everything written so far to the network. Never a proof of delivery.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>>;

    /// Closes in an orderly way; the caller bounds it by its own deadline. Once it is ready, reads
    /// give `Ok(0)`.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>>;

    /// The local port, where the transport knows it.
    fn source_port(&self) -> Option<NonZeroU16> {
        None
    }
}

/// One timer, re-armed at will.
pub trait Timer {
    /// Fires at `at` or, with `None`, never. The past fires at once. A time later than the one
    /// armed before may be taken lazily: an early firing is answered by arming again.
    fn arm(&mut self, at: Option<Instant>);

    /// Ready once the armed time has come, and again at every poll until re-armed. Never early,
    /// except as `arm` says.
    fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}
