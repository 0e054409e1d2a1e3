//! Who may use the relay: bearer tokens, signed tokens, and the origins of web pages.
//!
//! An origin is an extra fence only: programs that are no browsers can claim any. Without any
//! token configured, whoever reaches the listener may use the relay, but no web page whose origin
//! is not listed, since a page on any site could reach a relay on its visitor's own machine.

use core::fmt;
use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::allow::AllowList;
use crate::token::{SigningKey, TokenError};

/// Who may come in.
#[derive(Clone)]
pub struct Access {
    /// Tokens are compared as hashes under this key, drawn anew by each process.
    blind: Hmac<Sha256>,
    bearers: Vec<[u8; 32]>,
    keys: Vec<SigningKey>,
    origins: Vec<Box<str>>,
    /// Longest life of a signed token.
    token_life_max: Duration,
}

/// Who came in, and what for.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    /// Limits count by this.
    pub(crate) holder: Holder,
    /// For the audit; holds nothing secret.
    pub(crate) label: Box<str>,
    /// What the token names; none: whatever the relay allows.
    pub(crate) scope: Option<AllowList>,
    /// From then on, in seconds since 1970, no new channels.
    pub(crate) expires: Option<u64>,
    pub(crate) connections_max: Option<u32>,
}

/// A holder of tokens, as a hash.
pub(crate) type Holder = [u8; 16];

/// Why somebody may not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessError {
    NoToken,
    Token(TokenError),
    Origin,
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoToken => f.write_str("a token is needed"),
            Self::Token(error) => error.fmt(f),
            Self::Origin => f.write_str("origin not allowed"),
        }
    }
}

impl Access {
    /// Everybody who is no web page.
    pub fn new() -> Self {
        let mut key = [0; 32];
        // Without entropy the comparison is still one of whole hashes.
        let _ = getrandom::fill(&mut key);
        let blind = Hmac::new_from_slice(&key).expect("a key of any length is taken");
        Self {
            blind,
            bearers: Vec::new(),
            keys: Vec::new(),
            origins: Vec::new(),
            token_life_max: Duration::from_secs(86_400),
        }
    }

    /// Lets in who has this token. It is as good as a password: long and random.
    #[must_use]
    pub fn bearer(mut self, token: &str) -> Self {
        let hash = self.hash(token);
        self.bearers.push(hash);
        self
    }

    /// Lets in who has a token signed by this key. Several keys: while one is being replaced.
    #[must_use]
    pub fn signing_key(mut self, key: SigningKey) -> Self {
        self.keys.push(key);
        self
    }

    /// Longest time for which a signed token is taken, one day unless set.
    #[must_use]
    pub const fn token_life_max(mut self, life: Duration) -> Self {
        self.token_life_max = life;
        self
    }

    /// Lets in web pages of this origin, such as `https://shop.example`. Once one is listed, pages
    /// of others are not let in, whatever their token.
    #[must_use]
    pub fn origin(mut self, origin: &str) -> Self {
        let origin = origin.strip_suffix('/').unwrap_or(origin);
        self.origins.push(origin.to_ascii_lowercase().into());
        self
    }

    /// Whether a token is needed.
    pub fn needs_token(&self) -> bool {
        !self.bearers.is_empty() || !self.keys.is_empty()
    }

    /// Whether a page of this origin is let in; `None`: it is no page, or a browser that hides it.
    pub(crate) fn check_origin(&self, origin: Option<&str>) -> Result<(), AccessError> {
        let Some(origin) = origin else { return Ok(()) };
        if self.origins.is_empty() && self.needs_token() {
            return Ok(());
        }
        let mut origins = self.origins.iter();
        match origins.any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
            true => Ok(()),
            false => Err(AccessError::Origin),
        }
    }

    /// What the token is good for.
    pub(crate) fn check_token(&self, token: Option<&str>) -> Result<Grant, AccessError> {
        let Some(token) = token else {
            return match self.needs_token() {
                true => Err(AccessError::NoToken),
                false => Ok(Grant::of_anybody()),
            };
        };
        if !self.needs_token() {
            return Ok(Grant::of_anybody());
        }
        let hash = self.hash(token);
        let mut bearers = self.bearers.iter();
        // A hash under a key nobody knows: what its comparison takes tells nothing of the token.
        if let Some(at) = bearers.position(|bearer| *bearer == hash) {
            return Ok(Grant {
                holder: short(&hash),
                label: format!("token {}", at + 1).into(),
                scope: None,
                expires: None,
                connections_max: None,
            });
        }
        self.check_signed(token, &hash).map_err(AccessError::Token)
    }

    fn check_signed(&self, token: &str, hash: &[u8; 32]) -> Result<Grant, TokenError> {
        let mut error = TokenError::Signature;
        for key in &self.keys {
            let claims = match key.verify(token, now(), self.token_life_max) {
                Ok(claims) => claims,
                Err(TokenError::Signature) => continue,
                Err(other) => {
                    error = other;
                    continue;
                }
            };
            let scope = claims.scope()?;
            let holder = match &claims.subject {
                Some(subject) => short(&Sha256::digest(subject.as_bytes()).into()),
                None => short(hash),
            };
            let label = claims.subject.as_deref().unwrap_or("signed token");
            return Ok(Grant {
                holder,
                label: label.into(),
                scope,
                expires: Some(claims.expires),
                connections_max: claims.connections,
            });
        }
        // With bearers only, a wrong one is not malformed but unknown.
        Err(if self.keys.is_empty() {
            TokenError::Signature
        } else {
            error
        })
    }

    fn hash(&self, token: &str) -> [u8; 32] {
        let mac = self.blind.clone().chain_update(token.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

impl Default for Access {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("bearers", &self.bearers.len())
            .field("keys", &self.keys.len())
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}

impl Grant {
    fn of_anybody() -> Self {
        Self {
            holder: [0; 16],
            label: "anybody".into(),
            scope: None,
            expires: None,
            connections_max: None,
        }
    }

    /// Whether new channels may still be opened.
    pub(crate) fn is_over(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= now())
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn short(hash: &[u8; 32]) -> Holder {
    *hash.first_chunk().expect("half of a hash")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Claims;

    fn key() -> SigningKey {
        SigningKey::new(&[5; 32]).unwrap()
    }

    #[test]
    fn tokens_are_needed_once_there_are_any() {
        assert!(Access::new().check_token(None).is_ok());
        let access = Access::new().bearer("one").bearer("two");
        assert_eq!(access.check_token(None).unwrap_err(), AccessError::NoToken);
        assert_eq!(&*access.check_token(Some("two")).unwrap().label, "token 2");
        for wrong in ["", "tw", "two ", "TWO", "twoo"] {
            let error = access.check_token(Some(wrong)).unwrap_err();
            assert_eq!(error, AccessError::Token(TokenError::Signature), "{wrong}");
        }
    }

    #[test]
    fn signed_tokens_bring_their_own_bounds() {
        let access = Access::new().bearer("one").signing_key(key());
        let mut claims = Claims::new(now() + 60);
        claims.targets = vec!["node1".to_owned()];
        claims.connections = Some(3);
        claims.subject = Some("page".to_owned());
        let first = access.check_token(Some(&key().sign(&claims))).unwrap();
        claims.expires += 1;
        let second = access.check_token(Some(&key().sign(&claims))).unwrap();
        assert_eq!(first.holder, second.holder, "limits count by the subject");
        assert_eq!(first.connections_max, Some(3));
        assert!(first.scope.is_some() && !first.is_over());
        claims.expires = now();
        let error = access.check_token(Some(&key().sign(&claims))).unwrap_err();
        assert_eq!(error, AccessError::Token(TokenError::Expired));
    }

    #[test]
    fn origins_are_a_fence_for_pages() {
        let open = Access::new();
        assert!(open.check_origin(None).is_ok());
        assert!(open.check_origin(Some("https://evil.example")).is_err());
        assert!(open.check_origin(Some("null")).is_err());
        let with_token = Access::new().bearer("one");
        assert!(with_token.check_origin(Some("https://any.example")).is_ok());
        let listed = Access::new().bearer("one").origin("https://Shop.example/");
        assert!(listed.check_origin(Some("https://shop.example")).is_ok());
        for other in [
            "https://shop.example.evil",
            "http://shop.example",
            "https://shop.example:444",
            "null",
            "",
        ] {
            assert!(listed.check_origin(Some(other)).is_err(), "{other}");
        }
    }
}
