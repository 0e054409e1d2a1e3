//! Segments of protocol 5: whatever comes is cut the same however the bytes come, and frames that
//! were put into segments come out again.

use bytes::BytesMut;
use messina_core::conn::framer::{Cut, FrameLimits, Framer, FramerError};
use messina_core::conn::segments::Segments;
use messina_core::wire::segment::{PAYLOAD_MAX, put_segment};
use messina_core::wire::{Compression, FrameHeader};

use super::{Input, Target};

pub(super) const SEGMENTS: Target = Target {
    name: "segments",
    body,
    corpus,
};

/// What can be seen of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Whole frames, and those skipped, which have no body.
    frames: Vec<(FrameHeader, Option<BytesMut>)>,
    error: Option<FramerError>,
}

/// What the bytes are, limits, a list of chunk sizes, then the bytes.
fn body(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let choice = input.byte();
    let compression = [None, Some(Compression::Lz4)][usize::from(choice & 1)];
    let limits = FrameLimits::new(u32::from(input.word()), u32::from(input.word()));
    let sizes = input.short();
    let stream = match choice >> 1 & 3 {
        0 => input.rest().to_vec(),
        1 => parts(input, compression),
        _ => return frames(input, compression, sizes),
    };
    let expected = read(&stream, compression, limits, &[]);
    let in_chunks = read(&stream, compression, limits, sizes);
    assert_eq!(in_chunks, expected, "in chunks");
}

/// Any bytes in segments that are right.
fn parts(mut input: Input<'_>, compression: Option<Compression>) -> Vec<u8> {
    let mut stream = BytesMut::new();
    while !input.is_empty() {
        let is_self_contained = input.one_in(2);
        put_segment(&mut stream, input.short(), is_self_contained, compression);
    }
    stream.to_vec()
}

/// Frames with these bodies come out as they were put in.
fn frames(mut input: Input<'_>, compression: Option<Compression>, sizes: &[u8]) {
    let (mut segments, mut bodies) = (Segments::new(compression), Vec::new());
    let mut stream = BytesMut::new();
    while !input.is_empty() && bodies.len() < 8 {
        let body = match input.one_in(4) {
            true => input.long().repeat(1 + input.below(200)),
            false => input.short().to_vec(),
        };
        let len = u32::try_from(body.len()).expect("short").to_be_bytes();
        let queue = segments.queue();
        queue.extend_from_slice(&[0x85, 0, 0, 1, 8]);
        queue.extend_from_slice(&len);
        queue.extend_from_slice(&body);
        bodies.push(body);
        while input.one_in(3) {
            let before = stream.len();
            let len = segments.put_next(&mut stream);
            assert!(len <= PAYLOAD_MAX && stream.len() - before <= PAYLOAD_MAX + 12);
        }
    }
    while segments.put_next(&mut stream) > 0 {}
    assert!(segments.queue().is_empty());
    let limits = FrameLimits::new(u32::MAX, 0);
    let seen = read(&stream, compression, limits, sizes);
    assert_eq!(seen.error, None);
    let bodies = bodies.iter().map(|body| Some(&body[..]));
    assert!(bodies.eq(seen.frames.iter().map(|(_, body)| body.as_deref())));
}

fn read(
    stream: &[u8],
    compression: Option<Compression>,
    limits: FrameLimits,
    sizes: &[u8],
) -> Seen {
    let (mut segments, mut framer) = (Segments::new(compression), Framer::new(limits));
    let (mut input, mut seen) = (BytesMut::new(), Seen::default());
    let (mut rest, mut started) = (stream, None);
    // Long streams in chunks that are not all short.
    let scale = 1 + stream.len() / 4096;
    let mut sizes = sizes.iter().map(|size| (usize::from(*size) + 1) * scale);
    loop {
        match segments.poll_cut(&mut framer, &mut input) {
            Ok(Some(Cut::Start(header))) => started = Some(header),
            Ok(Some(Cut::End(body))) => {
                let header = started.take().expect("an end has a start");
                seen.frames.push((header, Some(body)));
            }
            Ok(Some(Cut::TooLong(header))) => seen.frames.push((header, None)),
            Ok(Some(other)) => panic!("{other:?} of a body that is wanted whole"),
            Ok(None) => {
                assert!(input.len() < PAYLOAD_MAX + 12, "a whole segment is left");
                let chunk = sizes.next().unwrap_or(rest.len());
                let wanted = segments.wanted(&input, chunk);
                assert!((1..=chunk.max(input.len()).max(1)).contains(&wanted));
                if rest.is_empty() {
                    return seen;
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
}

fn corpus() -> Vec<Vec<u8>> {
    const VOID: &[u8] = &[0x85, 0, 0, 1, 8, 0, 0, 0, 4, 0, 0, 0, 1];
    let mut inputs = Vec::new();
    for (choice, compression) in [(0, None), (1, Some(Compression::Lz4))] {
        let mut stream = BytesMut::new();
        put_segment(&mut stream, &VOID.repeat(9), true, compression);
        put_segment(&mut stream, &VOID[..5], false, compression);
        put_segment(&mut stream, &VOID[5..], false, compression);
        put_segment(&mut stream, VOID, true, compression);
        inputs.push([&[choice, 0, 90, 1, 0, 2, 4, 9], &stream[..]].concat());
        let parts = [&[1, 5][..], &VOID[..5], &[0, 8], &VOID[5..], &[1, 13], VOID].concat();
        inputs.push([&[choice | 2, 0, 90, 1, 0, 1, 6], &parts[..]].concat());
        let bodies = [
            &[0, 3, 1, 2, 3, 0, 3, 0, 4][..],
            &[7; 4],
            &[199, 2, 2, 0, 0],
        ]
        .concat();
        inputs.push([&[choice | 4, 0, 90, 1, 0, 0], &bodies[..]].concat());
        let long = [&[3, 8, 0][..], &[9; 2048], &[100, 2, 0, 1, 5, 2]].concat();
        inputs.push([&[choice | 4, 0, 90, 1, 0, 1, 7], &long[..]].concat());
    }
    inputs
}
