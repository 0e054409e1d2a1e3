//! The small numbers of the frame header: protocol version, opcode, flags.
//!
//! Names and numbers only. Unknown numbers are typed errors that keep what was seen.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

/// A native protocol version that this crate speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum ProtocolVersion {
    /// Version 3: no unset values, no warnings, no key indexes in PREPARED.
    V3 = 3,
    /// Version 4: the home protocol of ScyllaDB.
    V4 = 4,
    /// Version 5: Apache Cassandra only; bodies travel in checksummed segments.
    V5 = 5,
}

impl ProtocolVersion {
    /// All versions, lowest first.
    pub const ALL: [Self; 3] = [Self::V3, Self::V4, Self::V5];

    /// The number on the wire, without the direction bit.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The next lower version, to step down to.
    #[must_use]
    pub const fn lower(self) -> Option<Self> {
        match self {
            Self::V3 => None,
            Self::V4 => Some(Self::V3),
            Self::V5 => Some(Self::V4),
        }
    }

    /// Whether a value can be left unset (version 4 and later).
    #[must_use]
    pub const fn has_unset(self) -> bool {
        !matches!(self, Self::V3)
    }

    /// Whether PREPARED lists the markers that form the partition key (version 4 and later).
    #[must_use]
    pub const fn has_key_indexes(self) -> bool {
        !matches!(self, Self::V3)
    }

    /// Whether result metadata ids are part of the plain protocol (version 5).
    #[must_use]
    pub const fn has_metadata_id(self) -> bool {
        matches!(self, Self::V5)
    }

    /// Whether frames travel in segments once STARTUP was answered (version 5).
    #[must_use]
    pub const fn has_segments(self) -> bool {
        matches!(self, Self::V5)
    }

    /// Whether query flags are four bytes and can name a keyspace and a "now" (version 5).
    #[must_use]
    pub const fn has_wide_flags(self) -> bool {
        matches!(self, Self::V5)
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "v{}", self.number())
    }
}

impl TryFrom<u8> for ProtocolVersion {
    type Error = UnknownVersion;

    fn try_from(number: u8) -> Result<Self, UnknownVersion> {
        match number {
            3 => Ok(Self::V3),
            4 => Ok(Self::V4),
            5 => Ok(Self::V5),
            _ => Err(UnknownVersion(number)),
        }
    }
}

/// A protocol version number that this crate does not speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownVersion(pub u8);

impl fmt::Display for UnknownVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "unknown protocol version {}", self.0)
    }
}

impl core::error::Error for UnknownVersion {}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Opcode {
    /// Response: the request failed.
    Error = 0x00,
    /// Request: opens the conversation.
    Startup = 0x01,
    /// Response: the connection is usable, or a registration was taken.
    Ready = 0x02,
    /// Response: the server wants a token.
    Authenticate = 0x03,
    /// Request: what do you support?
    Options = 0x05,
    /// Response: the answer to OPTIONS.
    Supported = 0x06,
    /// Request: run a statement given as text.
    Query = 0x07,
    /// Response: the answer to QUERY, PREPARE, EXECUTE and BATCH.
    Result = 0x08,
    /// Request: prepare a statement.
    Prepare = 0x09,
    /// Request: run a prepared statement.
    Execute = 0x0a,
    /// Request: subscribe to events.
    Register = 0x0b,
    /// Response without a request: something changed.
    Event = 0x0c,
    /// Request: run several statements as one.
    Batch = 0x0d,
    /// Response: the server wants another token.
    AuthChallenge = 0x0e,
    /// Request: a token.
    AuthResponse = 0x0f,
    /// Response: the token was good.
    AuthSuccess = 0x10,
}

impl Opcode {
    /// All opcodes.
    pub const ALL: [Self; 16] = [
        Self::Error,
        Self::Startup,
        Self::Ready,
        Self::Authenticate,
        Self::Options,
        Self::Supported,
        Self::Query,
        Self::Result,
        Self::Prepare,
        Self::Execute,
        Self::Register,
        Self::Event,
        Self::Batch,
        Self::AuthChallenge,
        Self::AuthResponse,
        Self::AuthSuccess,
    ];

    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Whether a server sends it.
    #[must_use]
    pub const fn is_response(self) -> bool {
        matches!(
            self,
            Self::Error
                | Self::Ready
                | Self::Authenticate
                | Self::Supported
                | Self::Result
                | Self::Event
                | Self::AuthChallenge
                | Self::AuthSuccess
        )
    }

    /// The protocol's name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Startup => "STARTUP",
            Self::Ready => "READY",
            Self::Authenticate => "AUTHENTICATE",
            Self::Options => "OPTIONS",
            Self::Supported => "SUPPORTED",
            Self::Query => "QUERY",
            Self::Result => "RESULT",
            Self::Prepare => "PREPARE",
            Self::Execute => "EXECUTE",
            Self::Register => "REGISTER",
            Self::Event => "EVENT",
            Self::Batch => "BATCH",
            Self::AuthChallenge => "AUTH_CHALLENGE",
            Self::AuthResponse => "AUTH_RESPONSE",
            Self::AuthSuccess => "AUTH_SUCCESS",
        }
    }

    /// Finds an opcode by the protocol's name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|opcode| opcode.name() == name)
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl TryFrom<u8> for Opcode {
    type Error = UnknownOpcode;

    fn try_from(code: u8) -> Result<Self, UnknownOpcode> {
        // They stand in the order of their codes, of which one is not in use.
        let place = match code {
            0x04 => None,
            0x00..0x04 => Some(code),
            _ => code.checked_sub(1),
        };
        let opcode = place.and_then(|place| Self::ALL.get(usize::from(place)));
        opcode.copied().ok_or(UnknownOpcode(code))
    }
}

/// An opcode that the protocol does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownOpcode(pub u8);

impl fmt::Display for UnknownOpcode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "unknown opcode 0x{:02x}", self.0)
    }
}

impl core::error::Error for UnknownOpcode {}

/// The flag byte of a frame header. Unknown bits are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The body is compressed (versions 3 and 4).
    pub const COMPRESSION: Self = Self(0x01);
    /// Request: trace this. Response: a trace id opens the body.
    pub const TRACING: Self = Self(0x02);
    /// A custom payload stands before the message.
    pub const CUSTOM_PAYLOAD: Self = Self(0x04);
    /// Response: warnings stand before the message.
    pub const WARNING: Self = Self(0x08);
    /// Request: a protocol version in beta is meant.
    pub const USE_BETA: Self = Self(0x10);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags with the bits of `other` cleared.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;

    #[test]
    fn every_byte_is_a_known_opcode_or_a_typed_error() {
        // 04 (CREDENTIALS) was retired with version 1.
        let known = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
        let responses = [0x00, 0x02, 0x03, 0x06, 0x08, 0x0c, 0x0e, 0x10];
        for byte in 0..=u8::MAX {
            match Opcode::try_from(byte) {
                Ok(opcode) => {
                    assert!(known.contains(&byte));
                    assert_eq!(opcode.code(), byte);
                    assert_eq!(opcode.is_response(), responses.contains(&byte), "{opcode}");
                    assert_eq!(Opcode::from_name(opcode.name()), Some(opcode));
                    assert_eq!(opcode.to_string(), opcode.name());
                }
                Err(error) => {
                    assert!(!known.contains(&byte));
                    assert_eq!(error, UnknownOpcode(byte));
                    assert_eq!(error.to_string(), format!("unknown opcode 0x{byte:02x}"));
                }
            }
        }
    }

    #[test]
    fn versions_are_three_to_five_and_step_down() {
        for byte in 0..=u8::MAX {
            match ProtocolVersion::try_from(byte) {
                Ok(version) => {
                    assert_eq!((version.number(), (3..=5).contains(&byte)), (byte, true))
                }
                Err(error) => assert_eq!((error.0, (3..=5).contains(&byte)), (byte, false)),
            }
        }
        assert_eq!(ProtocolVersion::V5.lower(), Some(ProtocolVersion::V4));
        assert_eq!(ProtocolVersion::V4.lower(), Some(ProtocolVersion::V3));
        assert_eq!(ProtocolVersion::V3.lower(), None);
        assert!(ProtocolVersion::V3 < ProtocolVersion::V5);
    }

    #[test]
    fn versions_are_printed_as_people_write_them() {
        assert_eq!(ProtocolVersion::V4.to_string(), "v4");
        assert_eq!(UnknownVersion(6).to_string(), "unknown protocol version 6");
    }

    #[test]
    fn flags_are_sets() {
        for left in 0..=u8::MAX {
            for right in 0..=u8::MAX {
                let (left, right) = (Flags(left), Flags(right));
                let mut both = left;
                both |= right;
                assert_eq!(left | right, both);
                let rest = both.without(right);
                for bit in (0..8).map(|bit| Flags(1 << bit)) {
                    let (in_left, in_right) = (left.contains(bit), right.contains(bit));
                    assert_eq!(both.contains(bit), in_left || in_right);
                    assert_eq!(rest.contains(bit), in_left && !in_right);
                }
            }
        }
    }
}
