//! Protocol 5 between frames and the bytes of a link: what came in segments is cut into frames,
//! frames to be sent are put into segments.
//!
//! Frames that wait together share a segment, a frame longer than one gets segments of its own. No
//! more is unpacked than the next frame needs, so memory is bounded as without segments: by the
//! longest frame that is read, and one payload. Which bytes of a connection travel this way the
//! handshake tells.

use bytes::{Buf as _, BytesMut};

use super::framer::{Cut, Framer, FramerError};
use crate::wire::segment::{PAYLOAD_MAX, Segment, SegmentError, put_segment};
use crate::wire::{Compression, frame_len};

/// Both directions of a connection that speaks in segments.
#[derive(Debug)]
pub struct Segments {
    compression: Option<Compression>,
    /// What came, from the first byte that is not cut yet.
    unpacked: BytesMut,
    /// Whole frames to be sent, but for the part of the first one that is sent already.
    queue: BytesMut,
    /// Bytes left of a long frame at the front of the queue; 0 if a frame begins there.
    long_left: usize,
}

impl Segments {
    /// The start of both directions, compressed as was agreed.
    #[must_use]
    pub fn new(compression: Option<Compression>) -> Self {
        Self {
            compression,
            unpacked: BytesMut::new(),
            queue: BytesMut::new(),
            long_left: 0,
        }
    }

    /// The next step through the frames that come, taking segments from the front of `input`. `None`
    /// when more bytes are needed.
    pub fn poll_cut(
        &mut self,
        framer: &mut Framer,
        input: &mut BytesMut,
    ) -> Result<Option<Cut>, FramerError> {
        loop {
            if let Some(cut) = framer.poll_cut(&mut self.unpacked)? {
                return Ok(Some(cut));
            }
            let taken = Segment::take(input, self.compression).map_err(FramerError::Segment)?;
            let Some(segment) = taken else {
                return Ok(None);
            };
            if segment.is_self_contained && !framer.is_between_frames(&self.unpacked) {
                return Err(FramerError::Segment(SegmentError::Misplaced));
            }
            if self.unpacked.is_empty() {
                self.unpacked = segment.payload;
            } else {
                self.unpacked.extend_from_slice(&segment.payload);
            }
        }
    }

    /// How much room the reader should have; see [`Framer::wanted`].
    #[must_use]
    pub fn wanted(&self, input: &BytesMut, chunk: usize) -> usize {
        let missing = Segment::missing(input, self.compression);
        missing.clamp(1, chunk.max(input.len()).max(1))
    }

    /// Where frames to be sent are put, each whole.
    pub const fn queue(&mut self) -> &mut BytesMut {
        &mut self.queue
    }

    /// Appends the next segment to `output`, and says how many bytes of frames it took from the queue;
    /// 0 is none.
    pub fn put_next(&mut self, output: &mut BytesMut) -> usize {
        if self.long_left == 0 {
            self.long_left = match self.short_frames() {
                0 => frame_len(&self.queue),
                len => {
                    let frames = self.queue.get(..len).unwrap_or_default();
                    put_segment(output, frames, true, self.compression);
                    self.queue.advance(len);
                    return len;
                }
            };
        }
        let len = self.long_left.min(PAYLOAD_MAX).min(self.queue.len());
        if len > 0 {
            let part = self.queue.get(..len).unwrap_or_default();
            put_segment(output, part, false, self.compression);
            self.queue.advance(len);
        }
        self.long_left = self.long_left.saturating_sub(len);
        len
    }

    /// The length of the frames at the front of the queue that fit into one segment; 0 if the first
    /// one does not.
    fn short_frames(&self) -> usize {
        let mut len = 0_usize;
        while let Some(rest) = self.queue.get(len..).filter(|rest| !rest.is_empty()) {
            let with_next = len.saturating_add(frame_len(rest));
            if with_next > PAYLOAD_MAX {
                break;
            }
            len = with_next;
        }
        len
    }
}

#[cfg(test)]
mod tests;
