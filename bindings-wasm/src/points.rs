//! Contact points as the shell gives them: texts, which only the network has to understand.

use alloc::vec::Vec;

use messina_core::config::DEFAULT_PORT;
use messina_core::error::{ConfigProblem, Error, ErrorKind};
use messina_core::target::{Endpoint, Name};

use crate::settings::number;

/// Reads `HOST`, `HOST:PORT` and `[V6]:PORT`, separated by commas.
pub(crate) fn parse_points(list: &str) -> Result<Vec<Endpoint>, Error> {
    let mut points = Vec::new();
    for text in list.as_bytes().split(|byte| *byte == b',') {
        let text = core::str::from_utf8(text.trim_ascii()).unwrap_or_default();
        points.push(parse_point(text).ok_or_else(|| bad_point(text))?);
    }
    Ok(points)
}

fn parse_point(text: &str) -> Option<Endpoint> {
    let bytes = text.as_bytes();
    let colon = |place: usize| (text.get(..place), text.get(place.saturating_add(1)..));
    let last = bytes.iter().rposition(|byte| *byte == b':');
    let is_one = last == bytes.iter().position(|byte| *byte == b':');
    let (host, port) = match last {
        Some(place) if is_one || bytes.get(place.checked_sub(1)?) == Some(&b']') => {
            let (host, port) = colon(place);
            let port = number::<u16>(port?);
            (host?, port.filter(|port| *port > 0)?)
        }
        _ => (text, DEFAULT_PORT),
    };
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_v6 = bare.is_some() || !is_one;
    let host = bare.unwrap_or(host);
    let is_valid = |byte: u8| match is_v6 {
        true => byte.is_ascii_hexdigit() || byte == b':' || byte == b'.',
        false => byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'),
    };
    let is_host = !host.is_empty() && host.bytes().all(is_valid);
    is_host.then(|| Endpoint::Name {
        host: Name::from(host),
        port,
    })
}

fn bad_point(text: &str) -> Error {
    let kind = ErrorKind::Config(ConfigProblem::ContactPoint);
    Error::with_text(kind, ["\"", text, "\" is not HOST or HOST:PORT"].concat())
}
