//! Bodies of fuzz targets: each takes any bytes, must not panic, and checks what must hold whatever
//! the bytes are. For `tests/fuzz` only.

use core::time::Duration;

use bytes::BytesMut;
use data_encoding::BASE64URL_NOPAD;

use crate::allow::{AllowList, Destination, Rule};
use crate::blocks::special;
use crate::cql::FirstBytes;
use crate::handshake::{HEAD_LEN_MAX, Protocol, Request};
use crate::login::{Credentials, Login};
use crate::target::{Host, Target};
use crate::token::SigningKey;

/// A request: what is accepted is short, says nothing of the token, and is read the same whatever
/// comes behind it.
pub fn request(bytes: &[u8]) {
    match Request::parse(bytes, "/cql") {
        Ok(Some((request, len))) => {
            assert!(len <= bytes.len() && len <= HEAD_LEN_MAX);
            let answer = request.accepted();
            assert!(answer.ends_with("\r\n\r\n") && answer.matches("\r\n\r\n").count() == 1);
            let again = Request::parse(&bytes[..len], "/cql");
            assert_eq!(again, Ok(Some((request.clone(), len))));
            if let Protocol::Plain(text, _) = &request.protocol {
                target(text.as_bytes());
            }
        }
        Ok(None) => assert!(bytes.len() < HEAD_LEN_MAX),
        Err(refusal) => {
            let answer = refusal.response();
            assert!((400..600).contains(&refusal.status));
            assert_eq!(answer.matches("\r\n\r\n").count(), 1);
        }
    }
}

/// A target and a rule: what is understood is spelled in one way only, and no rule for every address
/// lets anybody into a special block.
pub fn target(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    let _ = Rule::parse(text);
    let _ = Rule::parse_scope(text);
    let Ok(target) = Target::parse(text) else {
        return;
    };
    assert!(text.is_ascii());
    let shown = target.to_string();
    assert_eq!(Target::parse(&shown).as_ref(), Ok(&target), "{shown}");
    if let Host::Name(name) = &target.host {
        let last = name.rsplit('.').next().unwrap_or_default();
        assert!(
            last.parse::<u64>().is_err(),
            "{name}: some would read an address"
        );
    }
    let all = ["0.0.0.0/0:1-65535", "[::]/0:1-65535"];
    let all: AllowList = all
        .iter()
        .filter_map(|rule| Rule::parse(rule).ok())
        .collect();
    match all.judge(&target) {
        Ok(Destination::Address(address)) => assert_eq!(special(address.ip()), None),
        Ok(Destination::Name(..)) => panic!("no rule has a name"),
        Err(_) => {}
    }
}

/// A token: no bytes are one by themselves, and signed content is good only for its time.
pub fn token(bytes: &[u8]) {
    const NOW: u64 = 1_800_000_000;
    const LIFE: Duration = Duration::from_secs(3600);
    let key = SigningKey::new(&[7; 32]).expect("a key of 32 bytes");
    if let Ok(text) = core::str::from_utf8(bytes) {
        assert!(key.verify(text, NOW, LIFE).is_err());
    }
    let header = BASE64URL_NOPAD.encode(br#"{"alg":"HS256"}"#);
    let signed = format!("{header}.{}", BASE64URL_NOPAD.encode(bytes));
    if let Ok(claims) = key.verify(&key.sign_text(&signed), NOW, LIFE) {
        assert!(claims.expires > NOW && claims.expires - NOW <= LIFE.as_secs());
        let again = key.verify(&key.sign(&claims), NOW, LIFE);
        assert_eq!(again, Ok(claims.clone()));
        let _ = claims.scope();
    }
}

/// First bytes: once it is told what they are, no more bytes change that.
pub fn first_bytes(bytes: &[u8]) {
    let mut told = FirstBytes::Unclear;
    for len in 0..=bytes.len().min(16) {
        let now = FirstBytes::of(&bytes[..len]);
        assert!(
            told == FirstBytes::Unclear || told == now,
            "{told:?} became {now:?}"
        );
        assert!(len < 9 || now != FirstBytes::Unclear);
        told = now;
    }
}

/// A login: the sizes of pieces change nothing, and nothing is made up. The first byte is where the
/// client's bytes end and the node's begin, the second the size of the pieces.
pub fn login(bytes: &[u8]) {
    let [end, size, stream @ ..] = bytes else {
        return;
    };
    let (client, node) = stream.split_at(usize::from(*end).min(stream.len()));
    let whole = bridge(client, node, usize::MAX);
    let pieces = bridge(client, node, usize::from(*size).max(1));
    assert_eq!(whole, pieces);
    if let Ok((to_node, to_client)) = whole {
        assert!(to_node.len() <= client.len() + 9 + 4 + 4);
        assert!(to_client.len() <= node.len() + 128);
    }
}

/// What both sides get; an error is the same wherever it is found.
fn bridge(client: &[u8], node: &[u8], size: usize) -> Result<(BytesMut, BytesMut), ()> {
    let credentials = Credentials::new("u", "p");
    let mut login = Login::new();
    let (mut held, mut from_node) = (BytesMut::new(), BytesMut::new());
    let (mut to_node, mut to_client) = (BytesMut::new(), BytesMut::new());
    for piece in client.chunks(size) {
        held.extend_from_slice(piece);
        let passed = login.handle_client(&mut held, &mut to_node, &mut to_client);
        passed.map_err(drop)?;
    }
    for piece in node.chunks(size) {
        from_node.extend_from_slice(piece);
        let passed = login.handle_node(&credentials, &mut from_node, &mut to_node, &mut to_client);
        passed.map_err(drop)?;
    }
    let passed = login.handle_client(&mut held, &mut to_node, &mut to_client);
    passed.map_err(drop)?;
    Ok((to_node, to_client))
}
