//! Frames into segments and out of them, and what may not come.

use alloc::vec::Vec;

use super::*;
use crate::conn::framer::FrameLimits;

/// A RESULT whose body has this length.
fn frame(stream: u8, body_len: usize) -> Vec<u8> {
    let len = u32::try_from(body_len).unwrap().to_be_bytes();
    let body = (0..body_len).map(|at| (at >> 7) as u8 ^ stream);
    let head = [0x85, 0, 0, stream, 8];
    head.into_iter().chain(len).chain(body).collect()
}

/// Everything in segments, and how many bytes of frames each of them took.
fn packed(frames: &[Vec<u8>], compression: Option<Compression>) -> (BytesMut, Vec<usize>) {
    let mut segments = Segments::new(compression);
    for frame in frames {
        segments.queue().extend_from_slice(frame);
    }
    let (mut output, mut taken) = (BytesMut::new(), Vec::new());
    loop {
        match segments.put_next(&mut output) {
            0 => break,
            len => taken.push(len),
        }
    }
    (output, taken)
}

/// The bodies found in a stream that comes in pieces of this length.
fn bodies(stream: &[u8], piece: usize, compression: Option<Compression>) -> Vec<BytesMut> {
    let mut segments = Segments::new(compression);
    let mut framer = Framer::new(FrameLimits::new(1 << 20, 1 << 20));
    let (mut input, mut bodies) = (BytesMut::new(), Vec::new());
    for piece in stream.chunks(piece) {
        assert!((1..=64.max(input.len())).contains(&segments.wanted(&input, 64)));
        input.extend_from_slice(piece);
        while let Some(cut) = segments.poll_cut(&mut framer, &mut input).unwrap() {
            if let Cut::End(body) = cut {
                bodies.push(body);
            }
        }
    }
    assert!(input.is_empty() && framer.is_between_frames(&segments.unpacked));
    bodies
}

#[cfg(feature = "lz4")]
const COMPRESSIONS: &[Option<Compression>] = &[None, Some(Compression::Lz4)];
#[cfg(not(feature = "lz4"))]
const COMPRESSIONS: &[Option<Compression>] = &[None];

#[test]
fn frames_share_segments_and_long_ones_get_their_own() {
    const HEAD: usize = 9;
    let max = PAYLOAD_MAX;
    for (lens, expected) in [
        (&[0, 4, 100][..], &[3 * HEAD + 104][..]),
        (&[max - HEAD], &[max]),
        (&[max - HEAD, 0], &[max, HEAD]),
        (&[max - 2 * HEAD, 0], &[max]),
        (&[7, max - HEAD + 1, 8, 9], &[16, max, 1, 35]),
        (&[3 * max, 1], &[max, max, max, HEAD, 10]),
        (&[max, max], &[max, HEAD, max, HEAD]),
        (&[], &[]),
    ] {
        let frames: Vec<_> = (1..).zip(lens).map(|(at, len)| frame(at, *len)).collect();
        for &compression in COMPRESSIONS {
            let (stream, taken) = packed(&frames, compression);
            assert_eq!(taken, expected, "{lens:?}");
            for piece in [1 << 20, 4096, 13] {
                let found = bodies(&stream, piece, compression);
                assert_eq!(found.len(), frames.len());
                for (found, frame) in found.iter().zip(&frames) {
                    assert!(*found == frame[HEAD..], "{lens:?}");
                }
            }
        }
    }
}

/// One segment, with so much of a frame in it.
fn segment(part: &[u8], is_self_contained: bool) -> BytesMut {
    let mut output = BytesMut::new();
    put_segment(&mut output, part, is_self_contained, None);
    output
}

#[test]
fn whole_frames_do_not_come_amid_a_frame() {
    let frame = frame(1, 20);
    for (first, second, expected) in [
        (false, false, None),
        (
            false,
            true,
            Some(FramerError::Segment(SegmentError::Misplaced)),
        ),
        (
            true,
            true,
            Some(FramerError::Segment(SegmentError::Misplaced)),
        ),
        (true, false, None),
    ] {
        for border in 1..frame.len() {
            let (mut segments, mut framer) =
                (Segments::new(None), Framer::new(FrameLimits::new(64, 0)));
            let (one, other) = frame.split_at(border);
            let mut input = segment(one, first);
            input.extend_from_slice(&segment(other, second));
            let outcome = loop {
                match segments.poll_cut(&mut framer, &mut input) {
                    Ok(Some(_)) => {}
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            assert_eq!(outcome, expected, "{first} {second} {border}");
        }
    }
}

#[test]
fn frames_that_are_too_long_are_skipped_or_end_the_stream() {
    let frames = [frame(1, 300_000), frame(2, 5), frame(3, 400_000)];
    let (stream, _) = packed(&frames, None);
    let mut segments = Segments::new(None);
    let mut framer = Framer::new(FrameLimits::new(1000, 300_000));
    let mut input = stream;
    let mut step = || segments.poll_cut(&mut framer, &mut input);
    assert!(matches!(step(), Ok(Some(Cut::TooLong(_)))));
    assert!(matches!(step(), Ok(Some(Cut::Start(_)))));
    assert!(matches!(step(), Ok(Some(Cut::End(_)))));
    let error = step().unwrap_err();
    assert!(matches!(error, FramerError::TooLong(_)));
}
