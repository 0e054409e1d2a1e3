//! AUTHENTICATE, AUTH_CHALLENGE and AUTH_SUCCESS. Tokens may be null or empty, and do not show in
//! `Debug`.

use core::fmt;

use crate::wire::{ParseError, Reader};

/// The AUTHENTICATE response: the server wants a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authenticate<'a> {
    /// The class name of the server's authenticator.
    pub class: &'a str,
}

impl<'a> Authenticate<'a> {
    /// Reads the body.
    pub fn parse(reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        Ok(Self {
            class: reader.string("authenticator class")?,
        })
    }
}

/// The AUTH_CHALLENGE response: the server wants another token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AuthChallenge<'a> {
    /// The server's token; `None` is null.
    pub token: Option<&'a [u8]>,
}

impl<'a> AuthChallenge<'a> {
    /// Reads the body.
    pub fn parse(reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        Ok(Self {
            token: reader.bytes("challenge token")?,
        })
    }
}

impl fmt::Debug for AuthChallenge<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AuthChallenge(..)")
    }
}

/// The AUTH_SUCCESS response: the connection is usable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AuthSuccess<'a> {
    /// The server's last token; `None` is null.
    pub token: Option<&'a [u8]>,
}

impl<'a> AuthSuccess<'a> {
    /// Reads the body.
    pub fn parse(reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        Ok(Self {
            token: reader.bytes("success token")?,
        })
    }
}

impl fmt::Debug for AuthSuccess<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AuthSuccess(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn tokens_do_not_show_when_printed() {
        let token = Some(&b"secret"[..]);
        assert_eq!(
            format!("{:?}", AuthChallenge { token }),
            "AuthChallenge(..)"
        );
        assert_eq!(format!("{:?}", AuthSuccess { token }), "AuthSuccess(..)");
    }
}
