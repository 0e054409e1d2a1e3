//! Authentication: what a connection says when the node asks who it is.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::error::{Error, ErrorKind, PeerIncompatible};
use crate::words::joined;

/// Answers the node's authentication. One object serves all connections of a session; it must not
/// block and is never called under a lock.
pub trait Authenticator: Send + Sync {
    /// The first token for a node that names its authenticator class.
    fn initial_response(&self, class: &str) -> Result<Vec<u8>, Error>;

    /// The answer to a challenge; `None` is a null challenge.
    fn evaluate(&self, challenge: Option<&[u8]>) -> Result<Vec<u8>, Error>;
}

/// SASL PLAIN: user and password in the clear, as `PasswordAuthenticator` wants them.
#[derive(Clone)]
pub struct PlainAuthenticator {
    user: String,
    password: String,
}

impl PlainAuthenticator {
    /// Uses this user and password. Both may hold any characters but NUL.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            user: user.into(),
            password: password.into(),
        }
    }
}

impl Authenticator for PlainAuthenticator {
    fn initial_response(&self, _class: &str) -> Result<Vec<u8>, Error> {
        let token = joined(&["\0", &self.user, "\0", &self.password]);
        Ok(token.into_bytes())
    }

    fn evaluate(&self, _challenge: Option<&[u8]>) -> Result<Vec<u8>, Error> {
        let kind = ErrorKind::PeerIncompatible(PeerIncompatible::Authentication);
        Err(Error::with_text(
            kind,
            "a challenge came where a user and password are enough",
        ))
    }
}

impl fmt::Debug for PlainAuthenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainAuthenticator")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn tokens_are_nul_user_nul_password() {
        for (user, password, token) in [
            ("u", "p", &b"\0u\0p"[..]),
            ("\u{fc}", "p\u{e4}", b"\0\xc3\xbc\0p\xc3\xa4"),
            ("cassandra", "cassandra", b"\0cassandra\0cassandra"),
        ] {
            let plain = PlainAuthenticator::new(user, password);
            assert_eq!(plain.initial_response("any").unwrap(), token);
        }
    }

    #[test]
    fn challenges_are_refused_and_secrets_stay_secret() {
        let plain = PlainAuthenticator::new("user", "secret");
        assert!(plain.evaluate(None).is_err());
        assert!(plain.evaluate(Some(b"abc")).is_err());
        assert_eq!(
            format!("{plain:?}"),
            "PlainAuthenticator { user: \"user\", .. }"
        );
    }
}
