//! What the far end of a WebSocket says, as core's errors; and how a link's target is told to it.

use alloc::format;
use alloc::string::{String, ToString};

use messina_core::drive::{Steering, Target};
use messina_core::error::{LinkError, LinkErrorKind};

use crate::mux::reason_error;
use crate::tunnel::Reason;

/// How a close by the peer ends the stream.
pub(crate) fn closed(code: u16) -> Result<(), LinkError> {
    if let Some(reason) = Reason::from_close_code(code) {
        return Err(reason_error(reason));
    }
    let meaning = match code {
        1000 | 1001 | 1005 => return Ok(()),
        1006 => return Err(LinkError::new(LinkErrorKind::Reset)),
        1002 => "protocol error",
        1003 => "unsupported message",
        1008 => "not allowed",
        1009 => "message too long",
        1011 => "fault of the relay",
        1012 | 1013 => "try again later",
        _ => "closed by the relay",
    };
    Err(LinkError::said(LinkErrorKind::ClosedByPeer, code, meaning))
}

/// A text message came.
pub(crate) const TEXT: LinkError =
    LinkError::said(LinkErrorKind::Other, 1003, "a text message came");

/// The query that tells the target and the wished shard; other endpoints ignore it.
pub(crate) fn query(target: &Target) -> String {
    let mut text = String::from("target=");
    for byte in target.endpoint.to_string().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    if let Steering::Shard { shard, of } = target.steering {
        text.push_str(&format!("&shard={shard}&of={of}"));
    }
    text
}

/// The entry of the sub-protocol list that holds a token.
pub(crate) fn token_entry(token: &str) -> String {
    use base64::Engine;
    let mut entry = String::from(crate::TOKEN_PREFIX);
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode_string(token, &mut entry);
    entry
}

/// Where relays listen if nothing else is said.
pub(crate) const DEFAULT_PATH: &str = "/cql";

/// Most bytes of one message that is sent.
pub(crate) const MESSAGE_MAX: usize = 64 << 10;
