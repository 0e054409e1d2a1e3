//! A connection's link in its handshake.

#[cfg(any(test, feature = "protocol-v5"))]
use alloc::boxed::Box;
use core::task::{Context, Poll};

use bytes::BytesMut;

use super::buffers::{Intake, a_piece, broken_stream, write_some};
use crate::conn::extensions::Agreed;
use crate::conn::framer::Cut;
use crate::conn::negotiate::{HandshakeConfig, Negotiation};
#[cfg(any(test, feature = "protocol-v5"))]
use crate::conn::segments::Segments;
use crate::drive::hub::Hub;
use crate::drive::transport::{Clock, Link, Timer};
use crate::error::{Error, ErrorKind, LinkError, PeerMisbehaved, TimeoutKind};
use crate::sync::{Local, assert_unlocked};
use crate::time::Instant;
use crate::wire::FrameHeader;

/// A link in its handshake.
pub(super) struct Handshaking<L> {
    pub(super) link: L,
    /// `None` only while a step is taken.
    pub(super) negotiation: Negotiation,
    pub(super) intake: Intake,
    pub(super) output: BytesMut,
    pub(super) needs_flush: bool,
    pub(super) deadline: Instant,
    pub(super) read_chunk: usize,
    pub(super) started: Option<FrameHeader>,
}

impl<L: Link> Handshaking<L> {
    pub(super) fn start(
        link: L,
        config: Local<HandshakeConfig>,
        deadline: Instant,
        hub: &Hub,
    ) -> Result<Self, Error> {
        let limits = &hub.config().limits;
        let mut output = BytesMut::new();
        let negotiation = Negotiation::start(config, &mut output)?;
        Ok(Self {
            link,
            negotiation,
            intake: Intake::new(limits.frame, BytesMut::new()),
            output,
            needs_flush: false,
            deadline,
            read_chunk: limits.read_chunk,
            started: None,
        })
    }

    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        timer: &mut impl Timer,
        clock: &impl Clock,
    ) -> Poll<Result<(Agreed, bool), Error>> {
        if clock.now() >= self.deadline {
            let error = Error::new(ErrorKind::Timeout(TimeoutKind::Handshake));
            return Poll::Ready(Err(error));
        }
        for _ in 0..HANDSHAKE_READS_PER_POLL {
            if let Some(ready) = self.poll_frames()? {
                return Poll::Ready(Ok((ready, false)));
            }
            assert_unlocked();
            self.needs_flush |= !self.output.is_empty();
            write_some(&mut self.link, cx, &mut self.output, &mut 0)?;
            if self.needs_flush && self.output.is_empty() {
                self.needs_flush = self.link.poll_flush(cx)?.is_pending();
            }
            if self.output.is_empty() && self.negotiation.is_early() {
                return Poll::Ready(Ok((*self.negotiation.agreed(), true)));
            }
            self.intake.make_room(self.read_chunk.min(HANDSHAKE_CHUNK));
            match self.link.poll_read(cx, &mut self.intake.bytes) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(LinkError::CLOSED_BY_PEER.into())),
                Poll::Ready(Ok(_)) => continue,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => {}
            }
            while timer.poll_fired(cx).is_ready() {
                if clock.now() >= self.deadline {
                    let error = Error::new(ErrorKind::Timeout(TimeoutKind::Handshake));
                    return Poll::Ready(Err(error));
                }
                timer.arm(Some(self.deadline));
            }
            return Poll::Pending;
        }
        // A peer that sends without end must not keep the task, nor outlast the deadline.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Handles the frames that are there.
    fn poll_frames(&mut self) -> Result<Option<Agreed>, Error> {
        while let Some(cut) = self.intake.poll_cut().map_err(broken_stream)? {
            match cut {
                Cut::Start(header) => self.started = Some(header),
                Cut::Piece(_) => return Err(a_piece()),
                Cut::TooLong(_) => return Err(PeerMisbehaved::MalformedBody.into()),
                Cut::End(body) => {
                    let Some(header) = self.started.take() else {
                        return Err(Error::bug("the end of a frame without its start"));
                    };
                    if self.advance(&header, &body)? {
                        return Ok(Some(*self.negotiation.agreed()));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Takes one frame; `true` at the end. What is sent in answer goes in segments, if the frame
    /// begins them or others did.
    fn advance(&mut self, header: &FrameHeader, body: &[u8]) -> Result<bool, Error> {
        let before = self.output.len();
        let is_over = self.negotiation.advance(header, body, &mut self.output)?;
        #[cfg(any(test, feature = "protocol-v5"))]
        if self.intake.segments.is_none() && self.negotiation.begins_segments(header) {
            let compression = self.negotiation.agreed().compression;
            self.intake.segments = Some(Box::new(Segments::new(compression)));
        }
        if let Some(segments) = &mut self.intake.segments {
            *segments.queue() = self.output.split_off(before);
            while segments.put_next(&mut self.output) > 0 {}
        }
        Ok(is_over)
    }
}

/// Reads of a handshake that one poll does; answers are few.
const HANDSHAKE_READS_PER_POLL: usize = 16;

/// Answers of a handshake are short.
const HANDSHAKE_CHUNK: usize = 4 << 10;
