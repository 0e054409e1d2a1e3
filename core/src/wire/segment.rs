//! The segments of protocol 5: pieces of a connection's bytes with a checksum for the header and one
//! for the payload.
//!
//! From the answer to STARTUP on, frames (the specification calls them envelopes) travel in segments
//! both ways: several short frames in one that is self-contained, a long one over several that are
//! not. Here one segment is put or taken; what is in it is not looked at. Nothing is allocated by a
//! length that came: a payload is a slice of what was read, and one that was compressed has at most
//! [`PAYLOAD_MAX`] bytes. Integers are little-endian, unlike everywhere else in the protocol.
//!
//! Layouts: native protocol v5, sections 2.1 to 2.3.
//!
//! ```text
//! plain  length:17 self-contained:1 padding:6                       crc24  payload  crc32
//! lz4    length:17 inflated-length:17 self-contained:1 padding:5    crc24  payload  crc32
//! ```

use bytes::{Buf as _, BytesMut};
use crc32fast::Hasher;

use super::Compression;

/// The longest payload, in bytes, before it is compressed and as it travels.
pub const PAYLOAD_MAX: usize = (1 << LENGTH_BITS) - 1;

/// Why a segment cannot be read. Where the next one begins is unknown then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentError {
    /// The header is not what was sent.
    HeaderChecksum,
    /// The payload is not what was sent.
    PayloadChecksum,
    /// There is no payload.
    Empty,
    /// What was compressed does not have the length that it should have.
    Inflate,
    /// It should have whole frames and comes amid one.
    Misplaced,
}

impl SegmentError {
    /// What is wrong, in words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::HeaderChecksum => "the header's checksum is wrong",
            Self::PayloadChecksum => "the payload's checksum is wrong",
            Self::Empty => "it is empty",
            Self::Inflate => "it does not inflate",
            Self::Misplaced => "it begins amid a frame",
        }
    }
}

/// A segment that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Bytes of frames.
    pub payload: BytesMut,
    /// The frames in it are whole; else it is a part of one.
    pub is_self_contained: bool,
}

impl Segment {
    /// Takes a segment from the front of `input`; `None` if it is not whole yet. `compression` is
    /// what the connection agreed.
    pub fn take(
        input: &mut BytesMut,
        compression: Option<Compression>,
    ) -> Result<Option<Self>, SegmentError> {
        let Some(header) = Header::parse(input, compression)? else {
            return Ok(None);
        };
        if input.len() < header.segment_len() {
            return Ok(None);
        }
        input.advance(header.len);
        let payload = input.split_to(header.payload_len);
        let checksum = crc32(&payload).to_le_bytes();
        let is_right = input.first_chunk() == Some(&checksum);
        input.advance(TRAILER_LEN.min(input.len()));
        if !is_right {
            return Err(SegmentError::PayloadChecksum);
        }
        if payload.is_empty() {
            return Err(SegmentError::Empty);
        }
        let payload = match compression {
            Some(compression) if header.inflated_len > 0 => compression
                .inflate_block(&payload, header.inflated_len)
                .ok_or(SegmentError::Inflate)?,
            _ => payload,
        };
        Ok(Some(Self {
            payload,
            is_self_contained: header.is_self_contained,
        }))
    }

    /// Bytes that are missing in `input` until a segment is whole, as far as that is known; at least
    /// one.
    pub fn missing(input: &[u8], compression: Option<Compression>) -> usize {
        let whole = match Header::parse(input, compression) {
            Ok(Some(header)) => header.segment_len(),
            Ok(None) => header_len(compression).saturating_add(TRAILER_LEN),
            Err(_) => 0,
        };
        whole.saturating_sub(input.len()).max(1)
    }
}

/// Appends a segment with the front of `frames`, as much of it as fits, and says how much that is.
/// A payload that does not become shorter by compression goes as it is.
pub fn put_segment(
    output: &mut BytesMut,
    frames: &[u8],
    is_self_contained: bool,
    compression: Option<Compression>,
) -> usize {
    let payload = frames.get(..PAYLOAD_MAX).unwrap_or(frames);
    let start = output.len();
    let body = start.saturating_add(header_len(compression));
    output.resize(body, 0);
    let mut inflated_len = 0;
    match compression {
        Some(compression) if compression.deflate_block(payload, output) => {
            inflated_len = payload.len();
        }
        _ => output.extend_from_slice(payload),
    }
    let written = output.get(body..).unwrap_or_default();
    let checksum = crc32(written);
    let header = Header {
        len: header_len(compression),
        payload_len: written.len(),
        inflated_len,
        is_self_contained,
    };
    if let Some(place) = output.get_mut(start..body) {
        header.put(place);
    }
    output.extend_from_slice(&checksum.to_le_bytes());
    payload.len()
}

/// The head of a segment.
#[derive(Clone, Copy, Debug)]
struct Header {
    /// Its own length.
    len: usize,
    payload_len: usize,
    /// How long the payload was before it was compressed; 0 if it was not.
    inflated_len: usize,
    is_self_contained: bool,
}

impl Header {
    /// Reads it from the front of `input`; `None` if it is not whole yet. Its lengths have 17 bits,
    /// so neither is above [`PAYLOAD_MAX`].
    fn parse(input: &[u8], compression: Option<Compression>) -> Result<Option<Self>, SegmentError> {
        let len = header_len(compression);
        let Some((numbers, checksum)) = input
            .get(..len)
            .and_then(|header| header.split_at_checked(len.saturating_sub(CRC24_LEN)))
        else {
            return Ok(None);
        };
        if little_endian(checksum) != u64::from(crc24(numbers)) {
            return Err(SegmentError::HeaderChecksum);
        }
        let bits = little_endian(numbers);
        let length = |bits: u64| usize::try_from(bits & LENGTH_MASK).unwrap_or(PAYLOAD_MAX);
        let (inflated_len, flag) = match compression {
            Some(_) => (length(bits >> LENGTH_BITS), bits >> (2 * LENGTH_BITS)),
            None => (0, bits >> LENGTH_BITS),
        };
        Ok(Some(Self {
            len,
            payload_len: length(bits),
            inflated_len,
            is_self_contained: flag & 1 == 1,
        }))
    }

    /// Writes it, as long as `place` is.
    fn put(self, place: &mut [u8]) {
        let length = |len: usize| u64::try_from(len).unwrap_or(LENGTH_MASK) & LENGTH_MASK;
        let flag = u64::from(self.is_self_contained);
        let bits = match place.len() {
            HEADER_LEN_COMPRESSED => {
                let inflated = length(self.inflated_len) << LENGTH_BITS;
                length(self.payload_len) | inflated | flag << (2 * LENGTH_BITS)
            }
            _ => length(self.payload_len) | flag << LENGTH_BITS,
        };
        let Some((numbers, checksum)) =
            place.split_at_mut_checked(place.len().saturating_sub(CRC24_LEN))
        else {
            return;
        };
        put_little_endian(numbers, bits);
        put_little_endian(checksum, u64::from(crc24(numbers)));
    }

    /// The length of the whole segment.
    const fn segment_len(self) -> usize {
        self.len
            .saturating_add(self.payload_len)
            .saturating_add(TRAILER_LEN)
    }
}

const fn header_len(compression: Option<Compression>) -> usize {
    match compression {
        Some(_) => HEADER_LEN_COMPRESSED,
        None => HEADER_LEN_PLAIN,
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    let shifted = bytes.iter().rev();
    shifted.fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn put_little_endian(place: &mut [u8], number: u64) {
    for (byte, of_number) in place.iter_mut().zip(number.to_le_bytes()) {
        *byte = of_number;
    }
}

/// The checksum of a header. A table would buy little: three or five bytes a segment.
fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(CRC24_START, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte) << 16, |crc, _| {
            let shifted = crc << 1;
            match shifted & 1 << 24 {
                0 => shifted,
                _ => shifted ^ CRC24_POLYNOMIAL,
            }
        })
    })
}

/// The checksum of a payload: that of IEEE 802.3, which four bytes of the protocol go ahead of.
fn crc32(payload: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&CRC32_PREFIX);
    hasher.update(payload);
    hasher.finalize()
}

const LENGTH_BITS: u32 = 17;
const LENGTH_MASK: u64 = (1 << LENGTH_BITS) - 1;

const HEADER_LEN_PLAIN: usize = 6;
const HEADER_LEN_COMPRESSED: usize = 8;
const CRC24_LEN: usize = 3;
const TRAILER_LEN: usize = 4;

const CRC24_START: u32 = 0x0087_5060;
const CRC24_POLYNOMIAL: u32 = 0x0197_4f0b;
const CRC32_PREFIX: [u8; 4] = [0xfa, 0x2d, 0x55, 0xca];

#[cfg(test)]
mod tests;
