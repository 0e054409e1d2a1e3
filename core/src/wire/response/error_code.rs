//! Codes of ERROR. Numbers that this crate does not know are kept.

use alloc::string::String;
use core::fmt;

use crate::digits::put_hex;
use crate::words::put;

/// What kind of error the server reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// Something unexpected in the server.
    Server,
    /// The server did not understand the frame.
    Protocol,
    /// Wrong credentials.
    BadCredentials,
    /// Not enough live replicas to try.
    Unavailable,
    /// The coordinator has too much to do.
    Overloaded,
    /// The coordinator is still joining.
    IsBootstrapping,
    /// TRUNCATE failed.
    Truncate,
    /// Not enough replicas confirmed a write in time.
    WriteTimeout,
    /// Not enough replicas answered a read in time.
    ReadTimeout,
    /// Replicas failed a read.
    ReadFailure,
    /// A user-defined function failed.
    FunctionFailure,
    /// Replicas failed a write.
    WriteFailure,
    /// The change log could not be written.
    CdcWriteFailure,
    /// A conditional write may or may not have been applied.
    CasWriteUnknown,
    /// The statement does not parse.
    Syntax,
    /// The role may not do this.
    Unauthorized,
    /// The statement parses but makes no sense.
    Invalid,
    /// A configuration does not allow this.
    Config,
    /// What is to be created exists.
    AlreadyExists,
    /// The server does not know the prepared id.
    Unprepared,
    /// The partition's rate limit was reached. The number differs by peer.
    RateLimit,
    /// Another code.
    Other(i32),
}

impl ErrorCode {
    const NUMBERS: [(i32, Self); 20] = [
        (0x0000, Self::Server),
        (0x000a, Self::Protocol),
        (0x0100, Self::BadCredentials),
        (0x1000, Self::Unavailable),
        (0x1001, Self::Overloaded),
        (0x1002, Self::IsBootstrapping),
        (0x1003, Self::Truncate),
        (0x1100, Self::WriteTimeout),
        (0x1200, Self::ReadTimeout),
        (0x1300, Self::ReadFailure),
        (0x1400, Self::FunctionFailure),
        (0x1500, Self::WriteFailure),
        (0x1600, Self::CdcWriteFailure),
        (0x1700, Self::CasWriteUnknown),
        (0x2000, Self::Syntax),
        (0x2100, Self::Unauthorized),
        (0x2200, Self::Invalid),
        (0x2300, Self::Config),
        (0x2400, Self::AlreadyExists),
        (0x2500, Self::Unprepared),
    ];

    /// Finds a code by its number. Never [`Self::RateLimit`], whose number the peer chooses.
    #[must_use]
    pub fn from_number(number: i32) -> Self {
        Self::NUMBERS
            .into_iter()
            .find_map(|(known, code)| (known == number).then_some(code))
            .unwrap_or(Self::Other(number))
    }

    /// The number on the wire; unknown for [`Self::RateLimit`].
    #[must_use]
    pub fn number(self) -> Option<i32> {
        match self {
            Self::Other(number) => Some(number),
            code => Self::NUMBERS
                .into_iter()
                .find_map(|(number, known)| (known == code).then_some(number)),
        }
    }

    /// The protocol's name, or `UNKNOWN`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Server => "SERVER_ERROR",
            Self::Protocol => "PROTOCOL_ERROR",
            Self::BadCredentials => "BAD_CREDENTIALS",
            Self::Unavailable => "UNAVAILABLE",
            Self::Overloaded => "OVERLOADED",
            Self::IsBootstrapping => "IS_BOOTSTRAPPING",
            Self::Truncate => "TRUNCATE_ERROR",
            Self::WriteTimeout => "WRITE_TIMEOUT",
            Self::ReadTimeout => "READ_TIMEOUT",
            Self::ReadFailure => "READ_FAILURE",
            Self::FunctionFailure => "FUNCTION_FAILURE",
            Self::WriteFailure => "WRITE_FAILURE",
            Self::CdcWriteFailure => "CDC_WRITE_FAILURE",
            Self::CasWriteUnknown => "CAS_WRITE_UNKNOWN",
            Self::Syntax => "SYNTAX_ERROR",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::Invalid => "INVALID",
            Self::Config => "CONFIG_ERROR",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::Unprepared => "UNPREPARED",
            Self::RateLimit => "RATE_LIMIT",
            Self::Other(_) => "UNKNOWN",
        }
    }
}

impl ErrorCode {
    pub(crate) fn put_text(self, text: &mut String) {
        put(text, self.name());
        if let Some(number) = self.number() {
            put(text, " (0x");
            put_hex(text, number.cast_unsigned(), 4);
            text.push(')');
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.put_text(&mut text);
        formatter.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn numbers_and_codes_match_and_unknown_ones_are_kept() {
        for number in -1..=0x1_0000 {
            let code = ErrorCode::from_number(number);
            assert_eq!(code.number(), Some(number));
        }
        assert_eq!(ErrorCode::from_number(0x2500), ErrorCode::Unprepared);
        assert_eq!(ErrorCode::from_number(0x4321), ErrorCode::Other(0x4321));
        assert_eq!(ErrorCode::RateLimit.number(), None);
    }

    #[test]
    fn the_specification_s_names_are_printed_with_their_numbers() {
        let printed = [
            (0x0000, "SERVER_ERROR (0x0000)"),
            (0x000a, "PROTOCOL_ERROR (0x000a)"),
            (0x1001, "OVERLOADED (0x1001)"),
            (0x2500, "UNPREPARED (0x2500)"),
            (0x4321, "UNKNOWN (0x4321)"),
        ];
        for (number, expected) in printed {
            assert_eq!(ErrorCode::from_number(number).to_string(), expected);
        }
        assert_eq!(ErrorCode::RateLimit.to_string(), "RATE_LIMIT");
    }
}
