//! Frames are cut the same however the bytes come and however bodies are wanted.

use bytes::BytesMut;
use messina_core::conn::framer::{BodyMode, Cut, FrameLimits, Framer, FramerError};
use messina_core::wire::{FrameHeader, HEADER_LEN};

use super::{Input, Target};
use crate::golden::RESPONSES;

pub(super) const FRAMER: Target = Target {
    name: "framer",
    body,
    corpus,
};

/// Everything that can be seen of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Whole frames, and those skipped, which have no body.
    frames: Vec<(FrameHeader, Option<Vec<u8>>)>,
    /// A frame whose body does not end.
    open: Option<FrameHeader>,
    /// Whether the stream may end there.
    is_between_frames: bool,
    error: Option<FramerError>,
}

/// Limits, modes, a list of chunk sizes, then the stream.
fn body(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let limits = FrameLimits::new(u32::from(input.word()), u32::from(input.word()));
    let modes = input.byte();
    let sizes = input.short();
    let stream = input.rest();
    let expected = by_hand(stream, limits);
    assert_eq!(cut(stream, limits, 0, &[]), expected, "in one piece");
    assert_eq!(cut(stream, limits, modes, sizes), expected, "in chunks");
}

/// Feeds a stream in chunks of these sizes, over and over; each bit of `modes` is for the frames
/// of that number modulo 8.
fn cut(stream: &[u8], limits: FrameLimits, modes: u8, sizes: &[u8]) -> Seen {
    let (mut framer, mut input) = (Framer::new(limits), BytesMut::new());
    let (mut seen, mut rest, mut body) = (Seen::default(), stream, Vec::new());
    let mut sizes = sizes.iter().map(|size| usize::from(*size) + 1).cycle();
    let mut mode = BodyMode::Whole;
    let mut started = 0_u32;
    loop {
        match framer.poll_cut(&mut input) {
            Ok(Some(Cut::Start(header))) => {
                assert_eq!(seen.open, None, "a frame within a frame");
                seen.open = Some(header);
                mode = match modes >> (started % 8) & 1 {
                    0 => BodyMode::Whole,
                    _ => BodyMode::Streaming,
                };
                started += 1;
                framer.set_mode(mode);
            }
            Ok(Some(Cut::Piece(piece))) => {
                assert!(!piece.is_empty() && mode == BodyMode::Streaming);
                body.extend_from_slice(&piece);
            }
            Ok(Some(Cut::End(rest))) => {
                body.extend_from_slice(&rest);
                let header = seen.open.take().expect("an end has a start");
                seen.frames.push((header, Some(core::mem::take(&mut body))));
            }
            Ok(Some(Cut::TooLong(header))) => seen.frames.push((header, None)),
            Ok(Some(other)) => panic!("unknown cut {other:?}"),
            Ok(None) => {
                let held_max = usize::try_from(limits.frame_len_max).expect("small");
                assert!(
                    input.len() < held_max.max(HEADER_LEN),
                    "more is kept than one frame"
                );
                let chunk = sizes.next().unwrap_or(rest.len());
                let wanted = framer.wanted(&input, chunk);
                assert!((1..=chunk.max(input.len()).max(1)).contains(&wanted));
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at(chunk.min(rest.len()));
                input.extend_from_slice(now);
                rest = later;
            }
            Err(error) => {
                seen.error = Some(error);
                return seen;
            }
        }
    }
    seen.is_between_frames = framer.is_between_frames(&input);
    seen
}

/// The same by slicing the whole stream.
fn by_hand(mut stream: &[u8], limits: FrameLimits) -> Seen {
    let mut seen = Seen::default();
    while let Some((header, rest)) = stream.split_first_chunk::<HEADER_LEN>() {
        let header = match FrameHeader::parse_response(*header) {
            Ok(header) => header,
            Err(error) => {
                seen.error = Some(FramerError::Header(error));
                return seen;
            }
        };
        let is_skipped = header.body_len > limits.frame_len_max;
        if is_skipped && header.body_len > limits.skip_len_max {
            seen.error = Some(FramerError::TooLong(header));
            return seen;
        }
        let whole = rest.split_at_checked(usize::try_from(header.body_len).expect("64 bits"));
        match whole {
            Some((_, rest)) if is_skipped => {
                seen.frames.push((header, None));
                stream = rest;
            }
            Some((body, rest)) => {
                seen.frames.push((header, Some(body.to_vec())));
                stream = rest;
            }
            None if is_skipped => {
                seen.frames.push((header, None));
                return seen;
            }
            None => {
                seen.open = Some(header);
                return seen;
            }
        }
    }
    seen.is_between_frames = stream.is_empty();
    seen
}

/// All golden frames in a row under several limits.
fn corpus() -> Vec<Vec<u8>> {
    let mut stream = Vec::new();
    for (n, golden) in (1_u16..).zip(RESPONSES) {
        let body = golden.bytes();
        let len = u32::try_from(body.len()).expect("short");
        stream.extend([golden.dialect.version.number() | 0x80, golden.flags.0]);
        stream.extend(n.to_be_bytes());
        stream.push(golden.opcode.code());
        stream.extend(len.to_be_bytes());
        stream.extend(body);
    }
    let input = |front: &[u8], sizes: &[u8]| {
        let count = u8::try_from(sizes.len()).expect("few");
        [front, &[count], sizes, &stream[..]].concat()
    };
    vec![
        input(&[4, 0, 0, 0, 0], &[]),
        input(&[4, 0, 0, 0, 0x55], &[0]),
        input(&[0, 20, 4, 0, 0xf0], &[3, 0, 12, 250]),
        input(&[0, 0, 4, 0, 0xff], &[8, 9]),
        input(&[0, 40, 0, 90, 0xff], &[30, 1]),
    ]
}
