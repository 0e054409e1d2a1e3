//! Compression: when it is asked for, and answers that are compressed.

use super::super::*;
use crate::wire::{Compression, ProtocolVersion};

/// SUPPORTED with `lz4` and `snappy`, as a node names them.
const BOTH: &[u8] = b"\0\x01\0\x0bCOMPRESSION\0\x02\0\x03lz4\0\x06snappy";
const SNAPPY: &[u8] = b"\0\x01\0\x0bCOMPRESSION\0\x01\0\x06snappy";
const NEITHER: &[u8] = &[0, 0];

fn frame(flags: u8, stream: i16, opcode: Opcode, body: &[u8]) -> FrameHeader {
    FrameHeader {
        version: ProtocolVersion::V4,
        flags: Flags(flags),
        stream,
        opcode,
        body_len: body.len() as u32,
    }
}

fn started(compression: Option<Compression>, supported: &[u8]) -> Result<(Step, BytesMut), Error> {
    let mut config = HandshakeConfig::new(ProtocolVersion::V4);
    config.compression = compression;
    let mut output = BytesMut::new();
    let negotiation = Negotiation::start(Local::new(config), &mut output)?;
    output.clear();
    let header = frame(0, 0, Opcode::Supported, supported);
    let step = negotiation.handle_frame(&header, supported, &mut output)?;
    Ok((step, output))
}

#[test]
fn compression_is_asked_for_where_it_is_offered() {
    let (lz4, snappy) = (Some(Compression::Lz4), Some(Compression::Snappy));
    for (wanted, supported, told) in [
        (lz4, BOTH, Some(&b"\0\x0bCOMPRESSION\0\x03lz4"[..])),
        (snappy, BOTH, Some(b"\0\x0bCOMPRESSION\0\x06snappy")),
        (snappy, SNAPPY, Some(b"\0\x0bCOMPRESSION\0\x06snappy")),
        (None, BOTH, None),
    ] {
        let (_, output) = started(wanted, supported).unwrap();
        assert_eq!(output[..2], [4, 0], "STARTUP itself is not compressed");
        let names = |part: &[u8]| output.windows(part.len()).any(|at| at == part);
        assert_eq!(names(b"COMPRESSION"), told.is_some());
        assert!(told.is_none_or(names));
    }
    for (wanted, supported) in [(lz4, SNAPPY), (lz4, NEITHER), (snappy, NEITHER)] {
        let error = started(wanted, supported).unwrap_err();
        let kind = ErrorKind::PeerIncompatible(PeerIncompatible::Compression);
        assert_eq!(error.kind(), kind);
    }
}

#[test]
fn answers_may_be_compressed_once_it_was_asked_for() {
    let (lz4, snappy) = (Some(Compression::Lz4), Some(Compression::Snappy));
    // READY as ScyllaDB sends it, as Cassandra does, and what nobody may send.
    for (wanted, flags, body, good) in [
        (lz4, 1, &[0, 0, 0, 0, 0][..], true),
        (snappy, 1, &[0], true),
        (lz4, 0, &[], true),
        (lz4, 1, &[0, 0, 0, 0], false),
        (lz4, 1, &[0, 0x10, 0, 1, 0], false),
        (None, 1, &[0, 0, 0, 0, 0], false),
    ] {
        let (Step::Next(negotiation), mut output) = started(wanted, BOTH).unwrap() else {
            panic!("STARTUP has to come");
        };
        let header = frame(flags, 1, Opcode::Ready, body);
        match negotiation.handle_frame(&header, body, &mut output) {
            Ok(Step::Ready(agreed)) => assert!(good && agreed.compression == wanted),
            Ok(step) => panic!("{step:?}"),
            Err(error) => {
                let kind = ErrorKind::PeerMisbehaved(PeerMisbehaved::BadCompression);
                assert!(!good && error.kind() == kind, "{error:?}");
            }
        }
    }
    // A body that has something in it: AUTHENTICATE of class "a", three bytes as one literal.
    let (Step::Next(negotiation), mut output) = started(lz4, BOTH).unwrap() else {
        panic!("STARTUP has to come");
    };
    let body = b"\0\0\0\x03\x30\0\x01a";
    let header = frame(1, 1, Opcode::Authenticate, body);
    let error = negotiation.handle_frame(&header, body, &mut output);
    let kind = ErrorKind::PeerIncompatible(PeerIncompatible::CredentialsMissing);
    assert_eq!(error.unwrap_err().kind(), kind);
    // SUPPORTED comes too early for that.
    let mut config = HandshakeConfig::new(ProtocolVersion::V4);
    config.compression = lz4;
    let mut output = BytesMut::new();
    let negotiation = Negotiation::start(Local::new(config), &mut output).unwrap();
    let body = [&[0, 0, 0, 2, 0x20][..], NEITHER].concat();
    let header = frame(1, 0, Opcode::Supported, &body);
    let error = negotiation.handle_frame(&header, &body, &mut output);
    let kind = ErrorKind::PeerMisbehaved(PeerMisbehaved::BadCompression);
    assert_eq!(error.unwrap_err().kind(), kind);
}
