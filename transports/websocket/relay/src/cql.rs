//! The header of a CQL frame, and whether the first bytes of a connection are one that a client
//! begins with. Native protocol 3, 4 and 5: all begin outside of version 5's segments. Pure.

/// What the first bytes of a connection show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstBytes {
    /// Too few to say.
    Unclear,
    /// A client of CQL.
    Cql,
    /// A TLS handshake; what is inside is the node's concern.
    Tls,
    /// Something else.
    Other,
}

impl FirstBytes {
    /// Looks at the bytes that came so far. What can be told early is told early: after the first
    /// wrong byte nothing good can come.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match bytes {
            [] => Self::Unclear,
            [TLS_HANDSHAKE, ..] => Self::of_tls(bytes),
            _ => Self::of_cql(bytes),
        }
    }

    /// A record of a handshake, of TLS 1.0 to 1.3, that holds a `ClientHello` (RFC 8446, 5.1).
    fn of_tls(bytes: &[u8]) -> Self {
        let fits = |at: usize, fits: fn(u8) -> bool| bytes.get(at).is_none_or(|byte| fits(*byte));
        match fits(1, |major| major == 3)
            && fits(2, |minor| minor <= 4)
            && fits(3, |high| high <= 0x40)
            && fits(5, |kind| kind == 1)
        {
            true if bytes.len() > 5 => Self::Tls,
            true => Self::Unclear,
            false => Self::Other,
        }
    }

    fn of_cql(bytes: &[u8]) -> Self {
        let fits = |at: usize, fits: fn(u8) -> bool| bytes.get(at).is_none_or(|byte| fits(*byte));
        let is_header = fits(0, |version| VERSIONS.contains(&version))
            // Neither compressed nor anything newer than we know.
            && fits(1, |flags| flags & !FIRST_FLAGS == 0)
            && fits(2, |stream_high| stream_high < 0x80)
            && fits(4, |opcode| opcode == STARTUP || opcode == OPTIONS);
        let Some(header) = Header::read(bytes) else {
            return match is_header {
                true => Self::Unclear,
                false => Self::Other,
            };
        };
        let fits_body = match header.opcode {
            OPTIONS => header.body_len == 0,
            _ => (2..=FIRST_BODY_LEN_MAX).contains(&header.body_len),
        };
        match is_header && fits_body {
            true => Self::Cql,
            false => Self::Other,
        }
    }
}

/// The nine bytes before every frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: u8,
    pub(crate) flags: u8,
    pub(crate) stream: [u8; 2],
    pub(crate) opcode: u8,
    pub(crate) body_len: usize,
}

impl Header {
    /// Its length.
    pub(crate) const LEN: usize = 9;

    /// Reads one; none if there are fewer bytes. A negative length is read as the largest.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let [version, flags, high, low, opcode, a, b, c, d] = *bytes.first_chunk()?;
        let body_len = i32::from_be_bytes([a, b, c, d]);
        Some(Self {
            version,
            flags,
            stream: [high, low],
            opcode,
            body_len: usize::try_from(body_len).unwrap_or(usize::MAX),
        })
    }

    /// A frame with this header's version and stream.
    pub(crate) fn frame(self, direction: u8, opcode: u8, body: &[u8]) -> Vec<u8> {
        let [high, low] = self.stream;
        let version = self.version & 0x7f | direction;
        let len = i32::try_from(body.len()).unwrap_or(i32::MAX).to_be_bytes();
        let mut frame = vec![version, 0, high, low, opcode];
        frame.extend_from_slice(&len);
        frame.extend_from_slice(body);
        frame
    }
}

/// Bit of the version byte in frames of clients and of nodes.
pub(crate) const REQUEST: u8 = 0;
pub(crate) const RESPONSE: u8 = 0x80;

pub(crate) const ERROR: u8 = 0x00;
pub(crate) const STARTUP: u8 = 0x01;
pub(crate) const READY: u8 = 0x02;
pub(crate) const AUTHENTICATE: u8 = 0x03;
pub(crate) const OPTIONS: u8 = 0x05;
pub(crate) const AUTH_CHALLENGE: u8 = 0x0e;
pub(crate) const AUTH_RESPONSE: u8 = 0x0f;
pub(crate) const AUTH_SUCCESS: u8 = 0x10;

const VERSIONS: core::ops::RangeInclusive<u8> = 3..=5;

/// Tracing, custom payload, beta.
const FIRST_FLAGS: u8 = 0x16;

/// What ScyllaDB takes for the first frame of a connection.
const FIRST_BODY_LEN_MAX: usize = 100_000;

/// Content type of a TLS record.
const TLS_HANDSHAKE: u8 = 0x16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_frames_of_clients_are_told() {
        let startup_v4 = [4, 0, 0, 1, 1, 0, 0, 0, 22];
        let options_v5 = [5, 0x10, 0, 0, 5, 0, 0, 0, 0];
        for bytes in [startup_v4, options_v5] {
            for len in 0..9 {
                assert_eq!(FirstBytes::of(&bytes[..len]), FirstBytes::Unclear);
            }
            assert_eq!(FirstBytes::of(&bytes), FirstBytes::Cql);
        }
        let hello = [0x16, 3, 1, 0, 0xf5, 1, 0, 0];
        assert_eq!(FirstBytes::of(&hello), FirstBytes::Tls);
        assert_eq!(FirstBytes::of(&hello[..5]), FirstBytes::Unclear);
    }

    #[test]
    fn other_protocols_are_told_at_once() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"SSH-2.0-x",
            b"*1\r\n$4\r\nINFO\r\n",
            b"EHLO x\r\n",
            b"\0\0\0\x08\x04\xd2\x16\x2f",
            b"stats\r\n",
            &[0x16, 2],
            &[0x16, 3, 9],
            &[0x84],
            &[2, 0, 0, 0, 1, 0, 0, 0, 22],
            &[6],
            // Compressed.
            &[4, 1],
            &[4, 0, 0x80],
            // QUERY before STARTUP.
            &[4, 0, 0, 0, 7],
            &[4, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff],
            &[4, 0, 0, 0, 1, 0, 1, 0x86, 0xa1],
            &[4, 0, 0, 0, 5, 0, 0, 0, 1],
        ] {
            assert_eq!(FirstBytes::of(bytes), FirstBytes::Other, "{bytes:x?}");
            assert_ne!(FirstBytes::of(&bytes[..1]), FirstBytes::Cql);
        }
    }
}
