//! Bytes between a link and its buffers.

use core::task::{Context, Poll};

use alloc::boxed::Box;

use bytes::{Buf as _, BytesMut};

use crate::conn::framer::{Cut, FrameLimits, Framer, FramerError};
use crate::conn::segments::Segments;
use crate::drive::transport::Link;
use crate::error::{Error, ErrorKind, LimitField, LinkError, PeerMisbehaved};

#[cold]
pub(super) fn a_piece() -> Error {
    Error::bug("a part of a body that is wanted whole")
}

/// Writes from the front of `output` until the link takes no more. Adds what it took to `written`
/// at once, since what was taken before an error may have reached the peer.
pub(super) fn write_some(
    link: &mut impl Link,
    cx: &mut Context<'_>,
    output: &mut BytesMut,
    written: &mut usize,
) -> Result<(), Error> {
    while !output.is_empty() {
        match link.poll_write(cx, output) {
            Poll::Pending => break,
            Poll::Ready(Ok(0)) => return Err(LinkError::CLOSED_BY_PEER.into()),
            Poll::Ready(Ok(len)) => {
                let len = len.min(output.len());
                output.advance(len);
                *written = written.saturating_add(len);
            }
            Poll::Ready(Err(error)) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What was read of a link, and how it is cut into frames.
#[derive(Debug)]
pub(super) struct Intake {
    framer: Framer,
    pub(super) bytes: BytesMut,
    /// There when they come, and go, in segments.
    pub(super) segments: Option<Box<Segments>>,
}

impl Intake {
    pub(super) const fn new(limits: FrameLimits, bytes: BytesMut) -> Self {
        Self {
            framer: Framer::new(limits),
            bytes,
            segments: None,
        }
    }

    /// The next step through the frames that were read. Segments are looked for out of line: the way
    /// of all other connections is counted in instructions.
    #[inline(always)]
    pub(super) fn poll_cut(&mut self) -> Result<Option<Cut>, FramerError> {
        if self.segments.is_some() {
            return self.poll_cut_of_segments();
        }
        self.framer.poll_cut(&mut self.bytes)
    }

    #[inline(never)]
    fn poll_cut_of_segments(&mut self) -> Result<Option<Cut>, FramerError> {
        let Some(segments) = &mut self.segments else {
            return Ok(None);
        };
        segments.poll_cut(&mut self.framer, &mut self.bytes)
    }

    /// Makes room for a read. A chunk is used up before the next one is taken; `reserve` takes the
    /// old one again when none of its slices is left.
    #[inline(always)]
    pub(super) fn make_room(&mut self, chunk: usize) {
        let wanted = match &self.segments {
            None => self.framer.wanted(&self.bytes, chunk),
            Some(segments) => segments.wanted(&self.bytes, chunk),
        };
        let spare = self.bytes.capacity().saturating_sub(self.bytes.len());
        if spare < wanted.min(SPARE_MIN) || spare == 0 {
            self.bytes.reserve(wanted.max(chunk));
        }
    }
}

pub(super) fn broken_stream(error: FramerError) -> Error {
    match error {
        FramerError::Header(error) => {
            let kind = ErrorKind::PeerMisbehaved(PeerMisbehaved::BadHeader);
            Error::with_text(kind, alloc::format!("{error}"))
        }
        FramerError::TooLong(header) => {
            let kind = ErrorKind::Limit(LimitField::FrameLen);
            Error::with_text(kind, alloc::format!("{} bytes declared", header.body_len))
        }
        #[cfg(any(test, feature = "protocol-v5"))]
        FramerError::Segment(error) => {
            let kind = ErrorKind::PeerMisbehaved(PeerMisbehaved::BadSegment);
            Error::with_text(kind, error.text())
        }
    }
}

/// A read chunk with less room than this is replaced.
const SPARE_MIN: usize = 4 << 10;
