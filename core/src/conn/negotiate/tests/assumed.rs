//! OPTIONS and STARTUP in one, by what the node offered before.

use alloc::vec::Vec;

use super::super::*;
use crate::conn::extensions::key;
use crate::wire::ProtocolVersion;

/// A `[string multimap]` with one value for each key.
fn supported(pairs: &[(&str, &str)]) -> Vec<u8> {
    let short = |len: usize| u16::try_from(len).unwrap().to_be_bytes();
    let mut body = Vec::from(short(pairs.len()));
    for (key, value) in pairs {
        body.extend(short(key.len()));
        body.extend(key.bytes());
        body.extend(short(1));
        body.extend(short(value.len()));
        body.extend(value.bytes());
    }
    body
}

const ALL: [(&str, &str); 6] = [
    (key::CLIENT_OPTIONS, ""),
    (key::LWT_MARK, "LWT_OPTIMIZATION_META_BIT_MASK=2147483648"),
    (key::RATE_LIMIT_ERROR, "ERROR_CODE=61440"),
    (key::METADATA_ID, ""),
    (key::TABLETS_V1, ""),
    (key::TABLETS_V2, ""),
];

fn header(stream: i16, opcode: Opcode, body: &[u8]) -> FrameHeader {
    FrameHeader {
        version: ProtocolVersion::V4,
        flags: Flags::NONE,
        stream,
        opcode,
        body_len: u32::try_from(body.len()).unwrap(),
    }
}

fn start(assumed: Option<Offer>) -> (Negotiation, BytesMut) {
    let mut config = HandshakeConfig::new(ProtocolVersion::V4);
    config.driver_config = Some(Local::from("{}"));
    config.assumed = assumed;
    let mut output = BytesMut::new();
    let negotiation = Negotiation::start(Local::new(config), &mut output).unwrap();
    (negotiation, output)
}

fn offer(pairs: &[(&str, &str)]) -> Offer {
    Offer::parse(&Supported::parse(&mut Reader::new(&supported(pairs))).unwrap())
}

/// What is written without an assumption in two steps is written with it in one, byte for byte,
/// and the numbers are those that SUPPORTED tells.
#[test]
fn options_and_startup_are_written_together() {
    let body = supported(&ALL);
    let (cold, mut expected) = start(None);
    let mut later = BytesMut::new();
    let answer = header(0, Opcode::Supported, &body);
    cold.handle_frame(&answer, &body, &mut later).unwrap();
    expected.extend_from_slice(&later);

    let assumed = Offer {
        lwt_mask: Some(0),
        rate_limit_error: Some(0),
        ..offer(&ALL)
    };
    let (warm, output) = start(Some(assumed));
    assert_eq!(output, expected);
    let mut more = BytesMut::new();
    let Step::Next(warm) = warm.handle_frame(&answer, &body, &mut more).unwrap() else {
        panic!("ready before READY")
    };
    let ready = header(1, Opcode::Ready, &[]);
    let Step::Ready(agreed) = warm.handle_frame(&ready, &[], &mut more).unwrap() else {
        panic!("not ready after READY")
    };
    assert!(more.is_empty());
    assert_eq!(agreed.offer, offer(&ALL));
    assert_eq!(agreed.tablets, TabletsRouting::V2);
}

/// Each key missing that was assumed, and each there that was not: STARTUP would have been
/// another one, unless the key decides nothing.
#[test]
fn another_offer_ends_the_handshake() {
    let all_but = |place| {
        let mut some = ALL.to_vec();
        some.remove(place);
        some
    };
    for (place, (name, _)) in ALL.into_iter().enumerate() {
        // Version 1 is not asked for where version 2 is offered.
        let matters = name != key::TABLETS_V1;
        for (assumed, offered) in [
            (ALL.to_vec(), all_but(place)),
            (all_but(place), ALL.to_vec()),
        ] {
            let (warm, _) = start(Some(offer(&assumed)));
            let body = supported(&offered);
            let frame = header(0, Opcode::Supported, &body);
            let step = warm.handle_frame(&frame, &body, &mut BytesMut::new());
            let changed = ErrorKind::PeerIncompatible(PeerIncompatible::OfferChanged);
            match step {
                Ok(_) => assert!(!matters, "{name}"),
                Err(error) => assert!(matters && error.kind() == changed, "{error}"),
            }
        }
    }
}

fn text(text: &str) -> Vec<u8> {
    let len = u16::try_from(text.len()).unwrap();
    [&len.to_be_bytes(), text.as_bytes()].concat()
}

/// STARTUP went along with OPTIONS, on this assumption; then SUPPORTED comes, and READY.
fn assuming(offer: Offer, early: bool, supported: &[u8]) -> Result<Agreed, ErrorKind> {
    let mut config = HandshakeConfig::new(ProtocolVersion::V4);
    (config.early, config.assumed) = (early, Some(offer));
    let mut output = BytesMut::new();
    let mut negotiation = Negotiation::start(Local::new(config), &mut output).unwrap();
    for (stream, opcode, body) in [(0, Opcode::Supported, supported), (1, Opcode::Ready, &[])] {
        let header = FrameHeader {
            version: ProtocolVersion::V4,
            flags: Flags::NONE,
            stream,
            opcode,
            body_len: u32::try_from(body.len()).unwrap(),
        };
        let step = negotiation.advance(&header, body, &mut output);
        if step.map_err(|error| error.kind())? {
            return Ok(*negotiation.agreed());
        }
        assert!(!negotiation.is_early(), "READY is near");
    }
    panic!("it does not end");
}

#[test]
fn what_is_offered_beyond_the_assumption_is_left_off_or_an_error() {
    let mask = text("LWT_OPTIMIZATION_META_BIT_MASK=2147483648");
    let marks: &[u8] = &[&[0, 1], &text(key::LWT_MARK)[..], &[0, 1], &mask].concat();
    let marked = Offer {
        lwt_mask: Some(0),
        ..Offer::default()
    };
    let changed = ErrorKind::PeerIncompatible(PeerIncompatible::OfferChanged);
    let mask = |agreed: Agreed| agreed.offer.lwt_mask;
    for (assumed, early, supported, expected) in [
        (Offer::default(), true, marks, Ok(None)),
        (Offer::default(), false, marks, Err(changed)),
        (Offer::default(), true, &[0, 0], Ok(None)),
        (marked, true, marks, Ok(Some(1 << 31))),
        (marked, false, marks, Ok(Some(1 << 31))),
        (marked, true, &[0, 0], Err(changed)),
    ] {
        assert_eq!(assuming(assumed, early, supported).map(mask), expected);
    }
}
