//! The nine bytes in front of every frame body.
//!
//! Version is a value, not a constant; the direction bit is checked. A header that cannot be
//! trusted is a [`HeaderError`] that keeps all nine bytes, so that the request on its stream can
//! still be told. Whether a body length is acceptable is for the reader of bodies to decide.

use core::fmt;

use super::writer::{EncodeError, EncodeErrorKind, Sink, int_length};
use super::{Flags, Opcode, ProtocolVersion};

/// Length of a frame header in bytes.
pub const HEADER_LEN: usize = 9;

const RESPONSE_BIT: u8 = 0x80;
const STREAM_OFFSET: usize = 2;
const BODY_LEN_OFFSET: usize = 5;

/// A frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Protocol version, without the direction bit.
    pub version: ProtocolVersion,
    /// Flags.
    pub flags: Flags,
    /// Stream id; -1 for events.
    pub stream: i16,
    /// What the body is.
    pub opcode: Opcode,
    /// Length of the body; at most `i32::MAX`.
    pub body_len: u32,
}

impl FrameHeader {
    /// Reads the header of a response.
    pub fn parse_response(bytes: [u8; HEADER_LEN]) -> Result<Self, HeaderError> {
        let [
            version,
            flags,
            stream_high,
            stream_low,
            opcode,
            body_len @ ..,
        ] = bytes;
        let failure = |kind| HeaderError { kind, bytes };
        let number = version & !RESPONSE_BIT;
        let known = ProtocolVersion::try_from(number)
            .map_err(|_| failure(HeaderErrorKind::UnknownVersion))?;
        if version & RESPONSE_BIT == 0 {
            return Err(failure(HeaderErrorKind::NotAResponse));
        }
        let opcode =
            Opcode::try_from(opcode).map_err(|_| failure(HeaderErrorKind::UnknownOpcode))?;
        if !opcode.is_response() {
            return Err(failure(HeaderErrorKind::NotAResponse));
        }
        let body_len = u32::try_from(i32::from_be_bytes(body_len))
            .map_err(|_| failure(HeaderErrorKind::NegativeLength))?;
        let stream = i16::from_be_bytes([stream_high, stream_low]);
        Ok(Self {
            version: known,
            flags: Flags(flags),
            stream,
            opcode,
            body_len,
        })
    }

    /// Writes the header of a request.
    ///
    /// Fails if the body is longer than the protocol can say.
    pub fn put_request<S: Sink + ?Sized>(&self, sink: &mut S) -> Result<(), EncodeError> {
        let body_len = usize::try_from(self.body_len).unwrap_or(usize::MAX);
        int_length("frame body", body_len)?;
        sink.put(&self.request_bytes());
        Ok(())
    }

    /// The header of a request whose length was checked.
    pub(crate) const fn request_bytes(&self) -> [u8; HEADER_LEN] {
        let [high, low] = self.stream.to_be_bytes();
        let [a, b, c, d] = self.body_len.to_be_bytes();
        let (version, opcode) = (self.version.number(), self.opcode.code());
        [version, self.flags.0, high, low, opcode, a, b, c, d]
    }
}

/// A response header that cannot be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderError {
    /// What is wrong with it.
    pub kind: HeaderErrorKind,
    /// The header as it came.
    pub bytes: [u8; HEADER_LEN],
}

/// What can be wrong with a response header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderErrorKind {
    /// A protocol version that this crate does not speak.
    UnknownVersion,
    /// The direction bit is clear, or the opcode is that of a request.
    NotAResponse,
    /// An opcode that the protocol does not define.
    UnknownOpcode,
    /// The length is negative.
    NegativeLength,
}

impl HeaderError {
    /// The version byte, direction bit included.
    #[must_use]
    pub const fn version_byte(&self) -> u8 {
        let [version, ..] = self.bytes;
        version
    }

    /// The stream id. Meaningful only if the version is known.
    #[must_use]
    pub const fn stream(&self) -> i16 {
        let [_, _, high, low, ..] = self.bytes;
        i16::from_be_bytes([high, low])
    }

    /// The opcode byte.
    #[must_use]
    pub const fn opcode_byte(&self) -> u8 {
        let [_, _, _, _, opcode, ..] = self.bytes;
        opcode
    }

    /// The length as it was declared.
    #[must_use]
    pub const fn declared_len(&self) -> i32 {
        let [_, _, _, _, _, len @ ..] = self.bytes;
        i32::from_be_bytes(len)
    }
}

impl fmt::Display for HeaderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "frame header on stream {}: ", self.stream())?;
        match self.kind {
            HeaderErrorKind::UnknownVersion => {
                write!(
                    formatter,
                    "unknown version byte 0x{:02x}",
                    self.version_byte()
                )
            }
            HeaderErrorKind::NotAResponse => write!(
                formatter,
                "not a response: version byte 0x{:02x}, opcode 0x{:02x}",
                self.version_byte(),
                self.opcode_byte()
            ),
            HeaderErrorKind::UnknownOpcode => {
                write!(formatter, "unknown opcode 0x{:02x}", self.opcode_byte())
            }
            HeaderErrorKind::NegativeLength => {
                write!(formatter, "negative length {}", self.declared_len())
            }
        }
    }
}

impl core::error::Error for HeaderError {}

/// Appends a whole request frame: header, body, and the body's length once it is known.
///
/// If the body fails or is too long, the sink is as it was before, so the output stays in step.
pub fn put_frame<S: Sink + ?Sized, E: From<EncodeError>>(
    sink: &mut S,
    mut header: FrameHeader,
    body: impl FnOnce(&mut S) -> Result<(), E>,
) -> Result<(), E> {
    let start = sink.len();
    header.body_len = 0;
    header.put_request(sink)?;
    let written = body(sink).and_then(|()| Ok(finish_frame(sink, start, u32::MAX)?));
    if written.is_err() {
        sink.truncate(start);
    }
    written
}

/// Writes the length of the body into the header at `start`: of all that stands behind it, which may
/// be at most `max` bytes.
pub(crate) fn finish_frame<S: Sink + ?Sized>(
    sink: &mut S,
    start: usize,
    max: u32,
) -> Result<(), EncodeError> {
    let len = sink.len().saturating_sub(start).saturating_sub(HEADER_LEN);
    let len = check_request_len(len, max.min(i32::MAX.cast_unsigned()))?;
    sink.patch(start.saturating_add(BODY_LEN_OFFSET), &len.to_be_bytes());
    Ok(())
}

/// Refuses a request body of `len` bytes that is longer than `max`.
pub(crate) fn check_request_len(len: usize, max: u32) -> Result<u32, EncodeError> {
    match u32::try_from(len) {
        Ok(len) if len <= max => Ok(len),
        _ => {
            let too_long = EncodeErrorKind::TooLong { len, max };
            Err(EncodeError::new("request", too_long))
        }
    }
}

/// The length of the frame that begins here, as its header tells; of all that is there if no whole
/// header is.
#[cfg(any(test, feature = "protocol-v5"))]
pub(crate) fn frame_len(bytes: &[u8]) -> usize {
    match bytes.first_chunk::<HEADER_LEN>() {
        Some([_, _, _, _, _, len @ ..]) => usize::try_from(u32::from_be_bytes(*len))
            .unwrap_or(usize::MAX)
            .saturating_add(HEADER_LEN)
            .min(bytes.len()),
        None => bytes.len(),
    }
}

/// Sets the stream id of a frame that was written at offset `frame_start`.
pub fn patch_stream<S: Sink + ?Sized>(sink: &mut S, frame_start: usize, stream: i16) {
    sink.patch(
        frame_start.saturating_add(STREAM_OFFSET),
        &stream.to_be_bytes(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn every_version_and_opcode_byte_is_a_header_or_a_typed_error() {
        let responses = [0x00, 0x02, 0x03, 0x06, 0x08, 0x0c, 0x0e, 0x10];
        for version in 0..=u8::MAX {
            for opcode in 0..=u8::MAX {
                let bytes = [version, 0x0e, 0x12, 0x34, opcode, 0, 0, 0, 4];
                let good = matches!(version, 0x83..=0x85) && responses.contains(&opcode);
                match FrameHeader::parse_response(bytes) {
                    Ok(header) => {
                        assert!(good, "{version:02x} {opcode:02x}");
                        assert_eq!(header.version.number(), version & 0x7f);
                        assert_eq!((header.flags, header.stream), (Flags(0x0e), 0x1234));
                        assert_eq!((header.opcode.code(), header.body_len), (opcode, 4));
                    }
                    Err(error) => {
                        assert!(!good, "{version:02x} {opcode:02x}");
                        assert_eq!(error.version_byte(), version);
                        assert_eq!((error.opcode_byte(), error.stream()), (opcode, 0x1234));
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        use HeaderErrorKind::*;
        let table = [
            (
                0x8400_0001_08ff_ffff,
                0xfe,
                NegativeLength,
                "negative length -2",
            ),
            (
                0x8400_0001_5500_0000,
                0x04,
                UnknownOpcode,
                "unknown opcode 0x55",
            ),
            (
                0x0400_0001_0800_0000,
                0x04,
                NotAResponse,
                "not a response: version byte 0x04, opcode 0x08",
            ),
            (
                0x8400_0001_0700_0000,
                0x04,
                NotAResponse,
                "not a response: version byte 0x84, opcode 0x07",
            ),
            (
                0x8600_0001_0800_0000,
                0x04,
                UnknownVersion,
                "unknown version byte 0x86",
            ),
            (
                0x4854_0001_2f31_2e31,
                0x20,
                UnknownVersion,
                "unknown version byte 0x48",
            ),
        ];
        for (front, last, kind, told) in table {
            let mut bytes = [0; HEADER_LEN];
            bytes[..8].copy_from_slice(&u64::to_be_bytes(front));
            bytes[8] = last;
            let error = FrameHeader::parse_response(bytes).unwrap_err();
            assert_eq!((error.kind, error.bytes), (kind, bytes));
            assert_eq!(
                error.to_string(),
                format!("frame header on stream 1: {told}")
            );
        }
    }

    #[test]
    fn streams_are_any_sixteen_bits() {
        for stream in i16::MIN..=i16::MAX {
            let [high, low] = stream.to_be_bytes();
            let bytes = [0x84, 0, high, low, 8, 0x7f, 0xff, 0xff, 0xff];
            let header = FrameHeader::parse_response(bytes).unwrap();
            assert_eq!((header.stream, header.body_len), (stream, 0x7fff_ffff));
        }
    }

    #[test]
    fn a_frame_whose_body_fails_is_taken_back() {
        let header = FrameHeader {
            version: ProtocolVersion::V4,
            flags: Flags::TRACING,
            stream: 0,
            opcode: Opcode::Options,
            body_len: 77,
        };
        let mut sink = Vec::new();
        put_frame::<_, EncodeError>(&mut sink, header, |_| Ok(())).unwrap();
        assert_eq!(sink, [4, 2, 0, 0, 5, 0, 0, 0, 0]);
        let result = put_frame(&mut sink, header, |sink: &mut Vec<u8>| {
            sink.put(&[1, 2, 3]);
            sink.put_short_bytes("id", &[0; 65_536])
        });
        assert!(result.is_err());
        put_frame::<_, EncodeError>(&mut sink, header, |sink| {
            sink.put(&[7, 8]);
            Ok(())
        })
        .unwrap();
        patch_stream(&mut sink, 9, -2);
        assert_eq!(sink[9..], [4, 2, 0xff, 0xfe, 5, 0, 0, 0, 2, 7, 8]);
    }
}
