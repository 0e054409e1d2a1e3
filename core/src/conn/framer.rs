//! Finds the borders of frames in a stream of bytes, and nothing else.
//!
//! Bodies are slices of the buffer that was read into: no copy, no allocation. A body that is not
//! whole yet stays in that buffer, which grows with the bytes that really came and never with the
//! length that was declared. Frames longer than the limit are skipped up to `skip_len_max` bytes;
//! beyond that the stream cannot be followed any more.

use bytes::{Buf, BytesMut};

#[cfg(any(test, feature = "protocol-v5"))]
use crate::wire::segment::SegmentError;
use crate::wire::{FrameHeader, HEADER_LEN, HeaderError};

/// Bounds of a [`Framer`], in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameLimits {
    /// Longest body that is read.
    pub frame_len_max: u32,
    /// Longest body that is skipped when it is longer than that; 0 never skips.
    pub skip_len_max: u32,
}

impl FrameLimits {
    /// The given bounds.
    pub const fn new(frame_len_max: u32, skip_len_max: u32) -> Self {
        Self {
            frame_len_max,
            skip_len_max,
        }
    }
}

/// How the body of the frame that has started is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyMode {
    /// In one piece.
    Whole,
    /// As it comes, in any number of pieces.
    Streaming,
}

/// One step through the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cut {
    /// A frame begins. Its body follows as [`Cut::End`], behind [`Cut::Piece`]s if it is streamed.
    Start(FrameHeader),
    /// Bytes of a streamed body; others follow.
    Piece(BytesMut),
    /// The last bytes of the body: all of them when it is wanted whole.
    End(BytesMut),
    /// A frame that is longer than the limit; its body will be skipped, nothing else comes of it.
    TooLong(FrameHeader),
}

/// Why the stream cannot be followed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FramerError {
    /// Not the header of a response.
    Header(HeaderError),
    /// Too long to be read or skipped.
    TooLong(FrameHeader),
    /// The segments that frames travel in are not as they were sent.
    #[cfg(any(test, feature = "protocol-v5"))]
    Segment(SegmentError),
}

/// The position within the current frame.
#[derive(Debug)]
pub struct Framer {
    limits: FrameLimits,
    state: State,
}

#[derive(Debug)]
enum State {
    Header,
    Body { left: usize, mode: BodyMode },
    Skip { left: usize },
}

impl Framer {
    /// A framer at the start of a stream.
    pub const fn new(limits: FrameLimits) -> Self {
        Self {
            limits,
            state: State::Header,
        }
    }

    /// Changes how the body that has just started is cut; to be called right after
    /// [`Cut::Start`], the default is [`BodyMode::Whole`].
    ///
    /// After [`Cut::TooLong`], streaming brings the body instead of skipping it.
    pub const fn set_mode(&mut self, wanted: BodyMode) {
        match &mut self.state {
            State::Body { mode, .. } => *mode = wanted,
            State::Skip { left } if matches!(wanted, BodyMode::Streaming) => {
                self.state = State::Body {
                    left: *left,
                    mode: wanted,
                };
            }
            _ => {}
        }
    }

    /// Bytes of a body that was begun which are still to come. They may come past the framer, to be
    /// told by [`pass`](Self::pass), when it has cut all before them.
    pub const fn body_left(&self) -> usize {
        match self.state {
            State::Body { left, .. } => left,
            _ => 0,
        }
    }

    /// So many bytes of the body have come past the framer.
    pub const fn pass(&mut self, len: usize) {
        if let State::Body { left, .. } = &mut self.state {
            *left = left.saturating_sub(len);
        }
    }

    /// The next step, taking bytes from the front of `input`. `None` when more bytes are needed.
    pub fn poll_cut(&mut self, input: &mut BytesMut) -> Result<Option<Cut>, FramerError> {
        loop {
            match self.state {
                State::Header => return self.cut_header(input),
                State::Skip { left } => {
                    let skipped = left.min(input.len());
                    input.advance(skipped);
                    let left = left.saturating_sub(skipped);
                    if left > 0 {
                        self.state = State::Skip { left };
                        return Ok(None);
                    }
                    self.state = State::Header;
                }
                State::Body { left, mode } => {
                    let must_wait = match mode {
                        BodyMode::Whole => input.len() < left,
                        BodyMode::Streaming => input.is_empty() && left > 0,
                    };
                    if must_wait {
                        return Ok(None);
                    }
                    // So said, the compiler sees that it is not beyond the end.
                    let taken = left.min(input.len());
                    let bytes = input.split_to(taken);
                    let left = left.saturating_sub(taken);
                    if left == 0 {
                        self.state = State::Header;
                        return Ok(Some(Cut::End(bytes)));
                    }
                    self.state = State::Body { left, mode };
                    return Ok(Some(Cut::Piece(bytes)));
                }
            }
        }
    }

    fn cut_header(&mut self, input: &mut BytesMut) -> Result<Option<Cut>, FramerError> {
        let Some(&bytes) = input.first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        input.advance(HEADER_LEN);
        let header = FrameHeader::parse_response(bytes).map_err(FramerError::Header)?;
        // A target where this does not fit has `frame_len_max` far below.
        let left = usize::try_from(header.body_len).unwrap_or(usize::MAX);
        if header.body_len <= self.limits.frame_len_max {
            self.state = State::Body {
                left,
                mode: BodyMode::Whole,
            };
            return Ok(Some(Cut::Start(header)));
        }
        if header.body_len <= self.limits.skip_len_max {
            self.state = State::Skip { left };
            return Ok(Some(Cut::TooLong(header)));
        }
        Err(FramerError::TooLong(header))
    }

    /// How much room the reader should have, at least 1: enough for what is missing, but never
    /// more than what has come already or `chunk`, whichever is larger, so that memory follows
    /// the bytes received.
    pub fn wanted(&self, input: &BytesMut, chunk: usize) -> usize {
        let missing = match self.state {
            State::Header => HEADER_LEN.saturating_sub(input.len()),
            State::Body { left, .. } => left.saturating_sub(input.len()),
            State::Skip { .. } => 1,
        };
        missing.clamp(1, chunk.max(input.len()).max(1))
    }

    /// Whether the stream may end here without cutting a frame.
    pub fn is_between_frames(&self, input: &BytesMut) -> bool {
        matches!(self.state, State::Header) && input.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Flags, HeaderErrorKind, Opcode};
    use alloc::vec::Vec;

    /// A VOID result on stream 1 and a READY on stream 2.
    const VOID: &[u8] = &[0x84, 0, 0, 1, 8, 0, 0, 0, 4, 0, 0, 0, 1];
    const READY: &[u8] = &[0x84, 0, 0, 2, 2, 0, 0, 0, 0];

    fn framer() -> Framer {
        Framer::new(FrameLimits::new(16, 64))
    }

    fn cuts(framer: &mut Framer, input: &mut BytesMut) -> Vec<Cut> {
        core::iter::from_fn(|| framer.poll_cut(input).unwrap()).collect()
    }

    #[test]
    fn frames_are_found_at_every_split_point() {
        let stream = [VOID, READY, VOID].concat();
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let (mut framer, mut input, mut seen) = (framer(), BytesMut::new(), Vec::new());
                for part in [&stream[..first], &stream[first..second], &stream[second..]] {
                    input.extend_from_slice(part);
                    seen.extend(cuts(&mut framer, &mut input));
                }
                let shape: Vec<_> = seen
                    .iter()
                    .map(|cut| match cut {
                        Cut::Start(header) => (header.stream, header.body_len),
                        Cut::End(bytes) => (100, bytes.len() as u32),
                        Cut::Piece(_) | Cut::TooLong(_) => (-1, 0),
                    })
                    .collect();
                let void = [(1, 4), (100, 4)];
                assert_eq!(shape, [&void[..], &[(2, 0), (100, 0)], &void[..]].concat());
                assert!(framer.is_between_frames(&input));
            }
        }
    }

    #[test]
    fn a_streamed_body_comes_as_the_bytes_come() {
        let (mut framer, mut input) = (framer(), BytesMut::from(&VOID[..10]));
        assert!(matches!(
            framer.poll_cut(&mut input),
            Ok(Some(Cut::Start(_)))
        ));
        framer.set_mode(BodyMode::Streaming);
        assert_eq!(
            framer.poll_cut(&mut input),
            Ok(Some(Cut::Piece(BytesMut::from(&[0][..]))))
        );
        assert_eq!(framer.poll_cut(&mut input), Ok(None));
        input.extend_from_slice(&VOID[10..]);
        let rest = BytesMut::from(&[0, 0, 1][..]);
        assert_eq!(cuts(&mut framer, &mut input), [Cut::End(rest)]);
    }

    #[test]
    fn long_bodies_are_skipped_and_longer_ones_end_the_stream() {
        let header = |len: i32| {
            let [a, b, c, d] = len.to_be_bytes();
            [0x84, 0, 0, 1, 8, a, b, c, d]
        };
        let (mut framer, mut input) = (framer(), BytesMut::new());
        input.extend_from_slice(&header(64));
        input.extend_from_slice(&[0xee; 64]);
        input.extend_from_slice(READY);
        let seen = cuts(&mut framer, &mut input);
        assert!(
            matches!(&seen[..], [Cut::TooLong(h), Cut::Start(r), Cut::End(_)]
            if h.body_len == 64 && r.opcode == Opcode::Ready && r.flags == Flags::NONE)
        );

        for len in [65, 0x1000_0001, i32::MAX, -1, i32::MIN] {
            let (mut framer, mut input) = (self::framer(), BytesMut::from(&header(len)[..]));
            match framer.poll_cut(&mut input) {
                Err(FramerError::TooLong(header)) => assert_eq!(header.body_len as i32, len),
                Err(FramerError::Header(error)) => {
                    assert_eq!(error.kind, HeaderErrorKind::NegativeLength);
                    assert!(len < 0);
                }
                other => panic!("{len}: {other:?}"),
            }
        }
    }

    #[test]
    fn room_asked_for_follows_the_bytes_received() {
        let mut framer = Framer::new(FrameLimits::new(u32::MAX, 0));
        let mut input = BytesMut::from(&[0x84, 0, 0, 1, 8, 0x10, 0, 0, 0, 1, 2, 3][..]);
        assert!(matches!(
            framer.poll_cut(&mut input),
            Ok(Some(Cut::Start(_)))
        ));
        assert_eq!(framer.wanted(&input, 8), 8);
        input.extend_from_slice(&[0; 1000]);
        assert_eq!(framer.wanted(&input, 8), 1003);
    }
}
