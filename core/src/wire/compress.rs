//! Bodies of frames, compressed: raw LZ4 blocks behind a big-endian length, raw Snappy blocks.
//!
//! Each algorithm is a feature. Without any of them [`Compression`] has no value, so that what
//! handles it costs nothing and is not there. Output is bounded before it is allocated: by the
//! caller's limit, and by what so many bytes can hold at most. Only bodies are compressed, never
//! headers; protocol 5 compresses segments instead, whose headers tell the lengths: those are blocks
//! without a length of their own.
//!
//! Follows section 5 of the native protocol v4, the LZ4 block format and the Snappy format.

use bytes::BytesMut;

use super::{Flags, HEADER_LEN};

/// How the bodies of frames are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// LZ4: little work, for networks of a data centre.
    #[cfg(feature = "lz4")]
    Lz4,
    /// Snappy: for nodes that do not offer LZ4.
    #[cfg(feature = "snappy")]
    Snappy,
}

/// Why a body cannot be inflated.
#[cfg_attr(
    not(any(feature = "lz4", feature = "snappy")),
    expect(dead_code, reason = "nothing is inflated")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inflate {
    /// It would be longer than allowed.
    TooLong,
    /// It is not what it says.
    Corrupt,
}

impl Compression {
    /// The name in SUPPORTED and STARTUP.
    pub const fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "lz4")]
            Self::Lz4 => "lz4",
            #[cfg(feature = "snappy")]
            Self::Snappy => "snappy",
        }
    }

    /// The body as it was before it was compressed, at most `max` bytes long.
    pub(crate) fn inflate(self, body: &[u8], max: u32) -> Result<BytesMut, Inflate> {
        let _ = (body, max);
        match self {
            #[cfg(feature = "lz4")]
            Self::Lz4 => lz4::inflate(body, max),
            #[cfg(feature = "snappy")]
            Self::Snappy => snappy::inflate(body, max),
        }
    }

    /// The body compressed, as the frame has it.
    fn deflate(self, body: &[u8]) -> Option<alloc::vec::Vec<u8>> {
        let _ = body;
        match self {
            #[cfg(feature = "lz4")]
            Self::Lz4 => lz4::deflate(body),
            #[cfg(feature = "snappy")]
            Self::Snappy => snappy::deflate(body),
        }
    }
}

#[cfg(any(test, feature = "protocol-v5"))]
impl Compression {
    /// The payload of a segment as it was before it was compressed, `len` bytes long.
    pub(crate) fn inflate_block(self, block: &[u8], len: usize) -> Option<BytesMut> {
        let _ = (block, len);
        match self {
            #[cfg(feature = "lz4")]
            Self::Lz4 => lz4::inflate_block(block, len, u32::MAX).ok(),
            #[cfg(feature = "snappy")]
            Self::Snappy => None,
        }
    }

    /// Appends the payload of a segment compressed, if it is shorter then. Whether it did.
    pub(crate) fn deflate_block(self, payload: &[u8], output: &mut BytesMut) -> bool {
        let _ = (payload, &output);
        match self {
            #[cfg(feature = "lz4")]
            Self::Lz4 => lz4::deflate_block(payload, output),
            #[cfg(feature = "snappy")]
            Self::Snappy => false,
        }
    }

    /// Whether protocol 5 knows it.
    pub(crate) const fn is_in_version_5(self) -> bool {
        match self {
            #[cfg(feature = "lz4")]
            Self::Lz4 => true,
            #[cfg(feature = "snappy")]
            Self::Snappy => false,
        }
    }
}

/// Compresses the body of the frame that begins at `frame` and is the last in `output`, if it is
/// long enough and becomes shorter by it. Allocates once, for the time of the call.
pub(crate) fn compress_frame(compression: Compression, output: &mut BytesMut, frame: usize) {
    let body_start = frame.saturating_add(HEADER_LEN);
    let Some(body) = output.get(body_start..) else {
        return;
    };
    if body.len() < DEFLATED_MIN {
        return;
    }
    let Some(deflated) = compression
        .deflate(body)
        .filter(|deflated| deflated.len() < body.len())
    else {
        return;
    };
    output.truncate(body_start);
    output.extend_from_slice(&deflated);
    let len = u32::try_from(deflated.len()).unwrap_or(u32::MAX);
    let header = output.get_mut(frame..body_start);
    if let Some([_, flags, _, _, _, length @ ..]) = header {
        *flags |= Flags::COMPRESSION.0;
        length.copy_from_slice(&len.to_be_bytes());
    }
}

/// Shorter bodies fit into one packet anyway.
const DEFLATED_MIN: usize = 512;

/// More bytes than one byte of a block can stand for: a length byte of LZ4 adds 255 at most, an
/// element of Snappy is at least two bytes for at most 64.
#[cfg(any(feature = "lz4", feature = "snappy"))]
const RATIO_MAX: usize = 255;

/// A declared length that is allowed and possible.
#[cfg(any(feature = "lz4", feature = "snappy"))]
fn checked_len(len: usize, block: &[u8], max: u32) -> Result<usize, Inflate> {
    if !u32::try_from(len).is_ok_and(|len| len <= max) {
        return Err(Inflate::TooLong);
    }
    if len > block.len().saturating_mul(RATIO_MAX) {
        return Err(Inflate::Corrupt);
    }
    Ok(len)
}

#[cfg(feature = "lz4")]
mod lz4 {
    use alloc::vec;
    use alloc::vec::Vec;

    use bytes::BytesMut;
    use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};

    use super::{Inflate, checked_len};

    const LENGTH_LEN: usize = 4;

    pub(super) fn inflate(body: &[u8], max: u32) -> Result<BytesMut, Inflate> {
        let (len, block) = body
            .split_first_chunk::<LENGTH_LEN>()
            .ok_or(Inflate::Corrupt)?;
        // Lengths are signed; a negative one is too long as well.
        let len = usize::try_from(u32::from_be_bytes(*len)).unwrap_or(usize::MAX);
        inflate_block(block, len, max)
    }

    pub(super) fn inflate_block(block: &[u8], len: usize, max: u32) -> Result<BytesMut, Inflate> {
        let mut inflated = BytesMut::zeroed(checked_len(len, block, max)?);
        match decompress_into(block, &mut inflated) {
            Ok(written) if written == len => Ok(inflated),
            _ => Err(Inflate::Corrupt),
        }
    }

    #[cfg(any(test, feature = "protocol-v5"))]
    pub(super) fn deflate_block(payload: &[u8], output: &mut BytesMut) -> bool {
        let start = output.len();
        let most = get_maximum_output_size(payload.len());
        output.resize(start.saturating_add(most), 0);
        let place = output.get_mut(start..).unwrap_or_default();
        let written = compress_into(payload, place).ok();
        let written = written.filter(|&written| written < payload.len());
        output.truncate(start.saturating_add(written.unwrap_or(0)));
        written.is_some()
    }

    pub(super) fn deflate(body: &[u8]) -> Option<Vec<u8>> {
        let len = u32::try_from(body.len()).ok()?;
        let most = get_maximum_output_size(body.len()).checked_add(LENGTH_LEN)?;
        let mut deflated = vec![0; most];
        let (head, block) = deflated.split_first_chunk_mut::<LENGTH_LEN>()?;
        *head = len.to_be_bytes();
        let written = compress_into(body, block).ok()?;
        deflated.truncate(written.checked_add(LENGTH_LEN)?);
        Some(deflated)
    }
}

#[cfg(feature = "snappy")]
mod snappy {
    use alloc::vec::Vec;

    use bytes::BytesMut;
    use snap::raw::{Decoder, Encoder, decompress_len};

    use super::{Inflate, checked_len};

    pub(super) fn inflate(body: &[u8], max: u32) -> Result<BytesMut, Inflate> {
        let len = decompress_len(body).map_err(|_| Inflate::Corrupt)?;
        let mut inflated = BytesMut::zeroed(checked_len(len, body, max)?);
        match Decoder::new().decompress(body, &mut inflated) {
            Ok(written) if written == len => Ok(inflated),
            _ => Err(Inflate::Corrupt),
        }
    }

    pub(super) fn deflate(body: &[u8]) -> Option<Vec<u8>> {
        Encoder::new().compress_vec(body).ok()
    }
}

#[cfg(test)]
#[cfg(all(feature = "lz4", feature = "snappy"))]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    const BOTH: [Compression; 2] = [Compression::Lz4, Compression::Snappy];

    /// Twenty times `a`, written by hand from the formats: one literal, then copies of what is one
    /// byte back (and, in LZ4, the five literals that a block must end with).
    const LZ4_AAA: &[u8] = &[
        0, 0, 0, 20, 0x1a, b'a', 1, 0, 0x50, b'a', b'a', b'a', b'a', b'a',
    ];
    const SNAPPY_AAA: &[u8] = &[20, 0x00, b'a', 0x1d, 1, 0x11, 1];

    #[test]
    fn bodies_of_the_formats_are_inflated() {
        let cases: [(Compression, &[u8], &[u8]); 6] = [
            (Compression::Lz4, &[0, 0, 0, 0, 0], b""),
            (Compression::Lz4, b"\0\0\0\x05\x50hello", b"hello"),
            (Compression::Lz4, LZ4_AAA, &[b'a'; 20]),
            (Compression::Snappy, &[0], b""),
            (Compression::Snappy, b"\x05\x10hello", b"hello"),
            (Compression::Snappy, SNAPPY_AAA, &[b'a'; 20]),
        ];
        for (compression, body, expected) in cases {
            let inflated = compression.inflate(body, 20);
            assert_eq!(inflated.as_deref(), Ok(expected), "{compression:?}");
        }
    }

    #[test]
    fn lengths_are_checked_before_anything_is_allocated() {
        for (compression, body) in [
            (Compression::Lz4, LZ4_AAA),
            (Compression::Snappy, SNAPPY_AAA),
        ] {
            assert_eq!(compression.inflate(body, 19), Err(Inflate::TooLong));
        }
        let lz4 = |len: u32| [&len.to_be_bytes()[..], &[0x50, 1, 2, 3, 4, 5]].concat();
        for (len, expected) in [
            (4, Inflate::Corrupt),
            (6, Inflate::Corrupt),
            (6 * 255 + 1, Inflate::Corrupt),
            (0x4000_0000, Inflate::Corrupt),
            (0x8000_0000, Inflate::TooLong),
            (u32::MAX, Inflate::TooLong),
        ] {
            let body = lz4(len);
            let max = 0x7fff_ffff;
            assert_eq!(Compression::Lz4.inflate(&body, max), Err(expected), "{len}");
        }
        // Four gibibytes less one, which nothing follows.
        let snappy = [0xff, 0xff, 0xff, 0xff, 0x0f];
        assert!(Compression::Snappy.inflate(&snappy, 1000).is_err());
        assert!(Compression::Snappy.inflate(&snappy, u32::MAX).is_err());
    }

    #[test]
    fn whatever_comes_is_inflated_or_refused() {
        for (compression, body) in [
            (Compression::Lz4, LZ4_AAA),
            (Compression::Snappy, SNAPPY_AAA),
        ] {
            for len in 0..body.len() {
                let cut = compression.inflate(&body[..len], 1 << 20);
                assert_eq!(cut, Err(Inflate::Corrupt), "{compression:?} cut at {len}");
            }
            for at in 0..body.len() {
                for byte in 0..=u8::MAX {
                    let mut broken = body.to_vec();
                    broken[at] = byte;
                    if let Ok(inflated) = compression.inflate(&broken, 1 << 20) {
                        assert!(inflated.len() <= body.len() * RATIO_MAX);
                    }
                }
            }
        }
    }

    /// A frame of 20 bytes before, then one with this body.
    fn frames(body: &[u8]) -> BytesMut {
        let len = u32::try_from(body.len()).unwrap().to_be_bytes();
        let header = [&[4, 2, 0, 9, 0x0a], &len[..]].concat();
        BytesMut::from(&[&[7; 20], &header[..], body].concat()[..])
    }

    #[test]
    fn long_bodies_are_compressed_in_their_frames() {
        for compression in BOTH {
            for len in [512, 1000, 100_000] {
                let body: Vec<u8> = (0..len).map(|at: usize| (at / 100) as u8).collect();
                let mut output = frames(&body);
                compress_frame(compression, &mut output, 20);
                assert!(output.len() < 29 + len / 4, "{compression:?} {len}");
                assert_eq!(output[..20], [7; 20]);
                assert_eq!(output[20..25], [4, 3, 0, 9, 0x0a], "the flag is set");
                let declared = u32::from_be_bytes(output[25..29].try_into().unwrap());
                assert_eq!(usize::try_from(declared).unwrap(), output.len() - 29);
                let inflated = compression.inflate(&output[29..], 100_000).unwrap();
                assert_eq!(inflated, body);
            }
        }
    }

    fn noise() -> Vec<u8> {
        let mut noise = 1_u32;
        (0..2000)
            .map(|_| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (noise >> 24) as u8
            })
            .collect()
    }

    #[test]
    fn what_would_not_be_shorter_stays_as_it_is() {
        let noise = noise();
        for compression in BOTH {
            for body in [vec![], vec![0; 511], noise.clone()] {
                let before = frames(&body);
                let mut output = before.clone();
                compress_frame(compression, &mut output, 20);
                assert_eq!(output, before);
            }
        }
    }

    #[test]
    fn one_byte_less_is_shorter_and_none_is_not() {
        for compression in BOTH {
            let mut shorter = [false; 2];
            // So many bytes come twice, early, where both formats look at each byte.
            for twice in 0..20 {
                let noise = noise();
                let body = [&noise[..20], &noise[..twice], &noise[20..600]].concat();
                let saved = body
                    .len()
                    .wrapping_sub(compression.deflate(&body).unwrap().len());
                let mut output = frames(&body);
                compress_frame(compression, &mut output, 20);
                let compressed = output[21] & Flags::COMPRESSION.0 != 0;
                assert_eq!(output.len() < 29 + body.len(), compressed);
                if let Some(seen) = shorter.get_mut(saved) {
                    *seen = true;
                }
            }
            assert_eq!(shorter, [true; 2], "both sides of the edge were seen");
        }
    }

    #[test]
    fn a_byte_stands_for_255_at_most() {
        assert_eq!(checked_len(6 * 255, &[0; 6], u32::MAX), Ok(6 * 255));
        for len in [6 * 255 + 1, 6 * 255 + 2] {
            assert_eq!(checked_len(len, &[0; 6], u32::MAX), Err(Inflate::Corrupt));
        }
    }
}
