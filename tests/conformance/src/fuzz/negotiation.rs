//! Handshakes with a peer that sends anything.

use bytes::BytesMut;
use messina_core::conn::auth::Authenticator;
use messina_core::conn::extensions::{Agreed, TabletsRouting};
use messina_core::conn::negotiate::{HandshakeConfig, Negotiation, Step};
use messina_core::error::Error;
use messina_core::wire::{Flags, FrameHeader, HEADER_LEN, Opcode, ProtocolVersion};
use messina_core::{Local, Shared};

use super::{Input, Target, offer};
use crate::golden::by_name;

pub(super) const NEGOTIATION: Target = Target {
    name: "negotiation",
    body,
    corpus,
};

/// Answers every challenge with the challenge.
struct Echo;

impl Authenticator for Echo {
    fn initial_response(&self, class: &str) -> Result<Vec<u8>, Error> {
        Ok(class.as_bytes().to_vec())
    }

    fn evaluate(&self, challenge: Option<&[u8]>) -> Result<Vec<u8>, Error> {
        Ok(challenge.unwrap_or_default().to_vec())
    }
}

/// Four choices of the configuration, then frames: opcode, which header, body behind its length.
fn body(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut config = HandshakeConfig::new(input.pick(&ProtocolVersion::ALL));
    let limit = TabletsRouting::V2;
    config.tablets_max = input.pick(&[limit, TabletsRouting::V1, TabletsRouting::Off]);
    config.authenticator = input.one_in(2).then(|| Shared::new(Echo) as Shared<_>);
    config.events = input.pick(&[vec![], vec!["STATUS_CHANGE", "SCHEMA_CHANGE"]]);
    let (version, has_events) = (config.version, !config.events.is_empty());
    let mut output = BytesMut::new();
    let config = Local::new(config);
    let mut negotiation = Negotiation::start(config.clone(), &mut output).expect("OPTIONS");
    let mut asked = vec![request(&mut output, version, 0)];
    while !input.is_empty() {
        let expected_stream = i16::try_from(asked.len()).expect("a short input") - 1;
        let (header, body) = frame(&mut input, version, expected_stream);
        match negotiation.handle_frame(&header, body, &mut output) {
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert!(output.is_empty(), "a request beside an error");
                return;
            }
            Ok(Step::Next(next)) if output.is_empty() => {
                assert_eq!(header.opcode, Opcode::Event, "nothing asked");
                negotiation = next;
            }
            Ok(Step::Next(next)) => {
                asked.push(request(&mut output, version, expected_stream + 1));
                negotiation = next;
            }
            Ok(Step::Ready(agreed)) => {
                assert!(output.is_empty());
                assert_eq!(asked[..2], [Opcode::Options, Opcode::Startup]);
                assert_eq!(asked.contains(&Opcode::Register), has_events);
                return check(&agreed, &config);
            }
            Ok(other) => panic!("unknown step {other:?}"),
        }
    }
}

/// Mostly the header that fits.
fn frame<'a>(
    input: &mut Input<'a>,
    version: ProtocolVersion,
    stream: i16,
) -> (FrameHeader, &'a [u8]) {
    let opcode = input.pick(&Opcode::ALL);
    let twist = input.byte();
    let body = input.long();
    let header = FrameHeader {
        version: match twist & 0x0f {
            0x0f => input.pick(&ProtocolVersion::ALL),
            _ => version,
        },
        flags: Flags(if twist & 0x30 == 0x30 {
            input.byte()
        } else {
            0
        }),
        stream: match twist & 0xc0 {
            0xc0 => input.word().cast_signed(),
            _ => stream,
        },
        opcode,
        body_len: u32::try_from(body.len()).expect("short"),
    };
    (header, body)
}

/// Takes the one request of the output.
fn request(output: &mut BytesMut, version: ProtocolVersion, stream: i16) -> Opcode {
    let frame = output.split();
    let (header, body) = frame.split_first_chunk::<HEADER_LEN>().expect("a header");
    let [sent_version, flags, high, low, opcode, len @ ..] = *header;
    assert_eq!((sent_version, flags), (version.number(), 0));
    assert_eq!(i16::from_be_bytes([high, low]), stream);
    assert_eq!(usize::try_from(u32::from_be_bytes(len)), Ok(body.len()));
    let opcode = Opcode::try_from(opcode).expect("an opcode");
    assert!(!opcode.is_response());
    opcode
}

fn check(agreed: &Agreed, config: &HandshakeConfig) {
    assert_eq!(agreed.version, config.version);
    let offer = &agreed.offer;
    assert!(match agreed.tablets {
        TabletsRouting::V2 => offer.tablets_v2 && config.tablets_max == TabletsRouting::V2,
        TabletsRouting::V1 => offer.tablets_v1 && config.tablets_max != TabletsRouting::Off,
        _ => true,
    });
    let always = config.version.has_metadata_id();
    assert_eq!(agreed.metadata_id, offer.metadata_id || always);
    assert_eq!(agreed.dialect().rate_limit_error, offer.rate_limit_error);
}

/// What a node that offers this agrees to; nothing if it cannot be understood.
pub(super) fn agree(version: ProtocolVersion, supported: &[u8]) -> Option<Agreed> {
    let config = Local::new(HandshakeConfig::new(version));
    let mut output = BytesMut::new();
    let start = Negotiation::start(config, &mut output).ok()?;
    let header = |stream, opcode| FrameHeader {
        version,
        flags: Flags::NONE,
        stream,
        opcode,
        body_len: 0,
    };
    let step = start.handle_frame(&header(0, Opcode::Supported), supported, &mut output);
    let Ok(Step::Next(next)) = step else {
        return None;
    };
    match next.handle_frame(&header(1, Opcode::Ready), &[], &mut output) {
        Ok(Step::Ready(agreed)) => Some(agreed),
        _ => None,
    }
}

/// Choices of the configuration, and frames that fit.
type Script<'a> = (&'a [u8; 4], &'a [(Opcode, Vec<u8>)]);

fn corpus() -> Vec<Vec<u8>> {
    let supported = (
        Opcode::Supported,
        by_name("supported, shard 4 of 4").bytes(),
    );
    let plain = (Opcode::Supported, offer::supported(&[]));
    let tablets = offer::supported(&[
        ("TABLETS_ROUTING_V1", ""),
        ("TABLETS_ROUTING_V2_EXPERIMENTAL", ""),
        ("SCYLLA_USE_METADATA_ID", ""),
        ("SCYLLA_RATE_LIMIT_ERROR", "ERROR_CODE=61440"),
        (
            "SCYLLA_LWT_ADD_METADATA_MARK",
            "LWT_OPTIMIZATION_META_BIT_MASK=2147483648",
        ),
    ]);
    let ready = (Opcode::Ready, vec![]);
    let golden = |name: &str| (by_name(name).opcode, by_name(name).bytes());
    let scripts: [Script<'_>; 6] = [
        (&[1, 0, 0, 0], &[supported.clone(), ready.clone()]),
        (
            &[1, 0, 1, 1],
            &[
                supported.clone(),
                golden("authenticate"),
                golden("auth challenge, abc"),
                golden("auth challenge, null"),
                golden("auth success, empty"),
                golden("node down"),
                ready.clone(),
            ],
        ),
        (
            &[0, 1, 0, 1],
            &[plain.clone(), ready.clone(), ready.clone()],
        ),
        (&[1, 1, 0, 0], &[(Opcode::Supported, tablets), ready]),
        (&[2, 0, 0, 0], &[golden("refused version")]),
        (
            &[1, 0, 1, 0],
            &[supported, golden("authenticate"), golden("bad credentials")],
        ),
    ];
    let input = |(front, frames): Script<'_>| {
        let mut bytes = front.to_vec();
        for (opcode, body) in frames {
            let place = Opcode::ALL.iter().position(|known| known == opcode);
            bytes.push(u8::try_from(place.expect("known")).expect("few"));
            bytes.push(0);
            bytes.extend(u16::try_from(body.len()).expect("short").to_be_bytes());
            bytes.extend(body);
        }
        bytes
    };
    scripts.map(input).into()
}
