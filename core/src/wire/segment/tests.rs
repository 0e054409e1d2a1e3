//! Vectors of a script that follows the specification, and of a real Cassandra node.

use alloc::vec::Vec;

use super::*;

/// VOID on stream 1, in a segment of its own.
const VOID: &[u8] = &[0x85, 0, 0, 1, 8, 0, 0, 0, 4, 0, 0, 0, 1];
const PLAIN: &[u8] = &[
    0x0d, 0, 2, 0xcf, 7, 0xf7, 0x85, 0, 0, 1, 8, 0, 0, 0, 4, 0, 0, 0, 1, 0x1e, 0x43, 0xb5, 0xfd,
];

fn take(input: &mut BytesMut) -> Result<Option<Segment>, SegmentError> {
    Segment::take(input, None)
}

#[test]
fn a_segment_is_put_and_taken() {
    let mut output = BytesMut::from(&b"before"[..]);
    assert_eq!(put_segment(&mut output, VOID, true, None), VOID.len());
    assert_eq!(output, [b"before", PLAIN].concat());
    let mut input = BytesMut::from(&[PLAIN, b"behind"].concat()[..]);
    let segment = take(&mut input).unwrap().unwrap();
    assert_eq!(segment.payload, VOID);
    assert!(segment.is_self_contained);
    assert_eq!(input, &b"behind"[..]);
}

#[test]
fn a_segment_that_is_not_whole_is_waited_for() {
    for len in 0..PLAIN.len() {
        let mut input = BytesMut::from(&PLAIN[..len]);
        assert_eq!(take(&mut input), Ok(None));
        assert_eq!(input.len(), len, "nothing is taken");
        let missing = Segment::missing(&input, None);
        let expected = if len < 6 { 10 - len } else { PLAIN.len() - len };
        assert_eq!(missing, expected, "{len}");
    }
}

/// Every bit of a segment, changed, is noticed; the payload is not given away.
#[test]
fn each_changed_bit_is_an_error() {
    for at in 0..PLAIN.len() {
        for bit in 0..8 {
            let mut bytes = BytesMut::from(PLAIN);
            bytes[at] ^= 1 << bit;
            let expected = match at < 6 {
                true => SegmentError::HeaderChecksum,
                false => SegmentError::PayloadChecksum,
            };
            assert_eq!(take(&mut bytes), Err(expected), "byte {at} bit {bit}");
        }
    }
}

#[test]
fn the_longest_payload_fits_and_the_rest_is_left() {
    for (len, taken) in [
        (PAYLOAD_MAX - 1, PAYLOAD_MAX - 1),
        (PAYLOAD_MAX, PAYLOAD_MAX),
        (PAYLOAD_MAX + 1, PAYLOAD_MAX),
    ] {
        let frames: Vec<u8> = (0..len).map(|at| (at * at / 8) as u8).collect();
        let mut output = BytesMut::new();
        assert_eq!(put_segment(&mut output, &frames, false, None), taken);
        assert_eq!(output.len(), taken + 10);
        let segment = take(&mut output).unwrap().unwrap();
        assert_eq!(segment.payload, frames[..taken]);
        assert!(!segment.is_self_contained && output.is_empty());
    }
}

#[test]
fn an_empty_segment_is_refused() {
    let mut output = BytesMut::new();
    put_segment(&mut output, &[], true, None);
    assert_eq!(take(&mut output), Err(SegmentError::Empty));
}

/// Rows of `SELECT key FROM system.local`, as Apache Cassandra 5.0 sends them.
#[test]
fn a_segment_of_a_real_node_is_taken() {
    let mut input = BytesMut::from(
        &b"\x38\0\x02\x43\xa1\x53\x85\0\0\x04\x08\0\0\0\x2f\0\0\0\x02\0\0\0\x01\0\0\0\x01\
        \0\x06system\0\x05local\0\x03key\0\x0d\0\0\0\x01\0\0\0\x05local\x43\xea\xed\x87"[..],
    );
    let segment = take(&mut input).unwrap().unwrap();
    assert!(segment.is_self_contained && input.is_empty());
    assert_eq!(segment.payload.len(), 9 + 0x2f);
    assert!(segment.payload.ends_with(b"\0\0\0\x05local"));
}

#[cfg(feature = "lz4")]
mod lz4 {
    use alloc::vec;

    use super::*;

    const LZ4: Option<Compression> = Some(Compression::Lz4);

    /// VOID as it is, then VOID as one block of LZ4.
    const BOTH: &[u8] = &[
        0x0d, 0, 0, 0, 4, 0x20, 0xb6, 0x9c, 0x85, 0, 0, 1, 8, 0, 0, 0, 4, 0, 0, 0, 1, 0x1e, 0x43,
        0xb5, 0xfd, 0x0e, 0, 0x1a, 0, 4, 0x26, 0xb6, 0x37, 0xd0, 0x85, 0, 0, 1, 8, 0, 0, 0, 4, 0,
        0, 0, 1, 0x4a, 0xe7, 0x53, 0xb0,
    ];

    #[test]
    fn payloads_come_as_they_are_or_compressed() {
        let mut input = BytesMut::from(BOTH);
        for _ in 0..2 {
            let segment = Segment::take(&mut input, LZ4).unwrap().unwrap();
            assert_eq!(segment.payload, VOID);
            assert!(segment.is_self_contained);
        }
        assert!(input.is_empty());
    }

    /// The same rows from the same node.
    #[test]
    fn a_segment_of_a_real_node_is_inflated() {
        let mut input = BytesMut::from(
            &b"\x37\0\x70\0\x04\x54\x01\x5e\xf1\x02\x85\0\0\x04\x08\0\0\0\x2f\0\0\0\x02\0\0\0\
            \x01\x04\0\xf1\x06\x06system\0\x05local\0\x03key\0\x0d\x1a\0\x80\0\0\x05local\
            \x63\x11\x72\x36"[..],
        );
        let segment = Segment::take(&mut input, LZ4).unwrap().unwrap();
        assert!(segment.is_self_contained && input.is_empty());
        assert_eq!(segment.payload.len(), 9 + 0x2f);
        assert!(segment.payload.ends_with(b"\0\0\0\x05local"));
    }

    #[test]
    fn a_payload_that_does_not_become_shorter_goes_as_it_is() {
        let mut output = BytesMut::new();
        put_segment(&mut output, VOID, true, LZ4);
        assert_eq!(output, BOTH[..25]);
        output.clear();
        let frames = vec![7; PAYLOAD_MAX];
        assert_eq!(put_segment(&mut output, &frames, true, LZ4), PAYLOAD_MAX);
        assert!(output.len() < 1000);
        let segment = Segment::take(&mut output, LZ4).unwrap().unwrap();
        assert_eq!(segment.payload, frames);
    }

    /// A segment around this block, which says that so many bytes are in it.
    fn segment(block: &[u8], inflated_len: usize) -> BytesMut {
        let mut bytes = BytesMut::zeroed(HEADER_LEN_COMPRESSED);
        let header = Header {
            len: HEADER_LEN_COMPRESSED,
            payload_len: block.len(),
            inflated_len,
            is_self_contained: true,
        };
        header.put(&mut bytes);
        bytes.extend_from_slice(block);
        bytes.extend_from_slice(&crc32(block).to_le_bytes());
        bytes
    }

    #[test]
    fn a_block_of_another_length_is_refused() {
        let block = [&[0xd0][..], VOID].concat();
        for len in [1, 12, 14, PAYLOAD_MAX] {
            let mut input = segment(&block, len);
            let taken = Segment::take(&mut input, LZ4);
            assert_eq!(taken, Err(SegmentError::Inflate), "{len}");
        }
        let mut input = segment(&block, 13);
        let taken = Segment::take(&mut input, LZ4).unwrap().unwrap();
        assert_eq!(taken.payload, VOID);
    }

    #[test]
    fn each_changed_byte_is_an_error() {
        let whole = &BOTH[25..];
        for at in 0..whole.len() {
            for byte in 0..=u8::MAX {
                let mut bytes = BytesMut::from(whole);
                bytes[at] = byte;
                let is_same = byte == whole[at];
                assert_eq!(Segment::take(&mut bytes, LZ4).is_ok(), is_same);
            }
        }
    }
}
