//! Bytes between a link and its buffers.

use core::task::{Context, Poll};

use bytes::{Buf as _, BytesMut};

use crate::conn::framer::{Framer, FramerError};
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

/// Makes room for a read. A chunk is used up before the next one is taken; `reserve` takes the
/// old one again when none of its slices is left.
pub(super) fn make_room(framer: &Framer, input: &mut BytesMut, chunk: usize) {
    let wanted = framer.wanted(input, chunk);
    let spare = input.capacity().saturating_sub(input.len());
    if spare < wanted.min(SPARE_MIN) || spare == 0 {
        input.reserve(wanted.max(chunk));
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
    }
}

/// A read chunk with less room than this is replaced.
const SPARE_MIN: usize = 4 << 10;
