//! Signed tokens: a JSON Web Token (RFC 7519) under HS256 and nothing else, short-lived, that can
//! name the targets it is good for.
//!
//! The signature is verified before anything of the content is read. Pure but for the key's memory.

use core::fmt;
use core::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::allow::{AllowList, Rule};

/// A secret that signs tokens and verifies them: the application's server has it, and the relay.
#[derive(Clone)]
pub struct SigningKey {
    mac: Hmac<Sha256>,
}

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claims {
    /// The holder: limits and the audit count by it. A token without one counts by itself.
    pub subject: Option<String>,
    /// When it ends, in seconds since 1970.
    pub expires: u64,
    /// From when on it is good.
    pub not_before: Option<u64>,
    /// What it is good for: aliases, names with or without a port, networks with ports. Empty: all
    /// that the relay allows.
    pub targets: Vec<String>,
    /// Most WebSockets that its holder may have open at once.
    pub connections: Option<u32>,
}

/// Why a token is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenError {
    /// Not a token of this kind.
    Malformed,
    /// Signed by somebody else, or changed.
    Signature,
    /// It was good.
    Expired,
    /// It is not good yet.
    TooEarly,
    /// It would be good for longer than the relay takes tokens for.
    LivesTooLong,
    /// A claim that is missing or of a wrong kind.
    Claim,
}

impl TokenError {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "token is malformed",
            Self::Signature => "token is not known",
            Self::Expired => "token has expired",
            Self::TooEarly => "token is not good yet",
            Self::LivesTooLong => "token lives too long",
            Self::Claim => "token has a wrong claim",
        }
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl core::error::Error for TokenError {}

impl SigningKey {
    /// A key of these bytes. `None` if they are fewer than 32: such a key can be guessed.
    pub fn new(secret: &[u8]) -> Option<Self> {
        if secret.len() < KEY_LEN_MIN {
            return None;
        }
        let mac = Hmac::new_from_slice(secret).ok()?;
        Some(Self { mac })
    }

    /// Makes a token.
    pub fn sign(&self, claims: &Claims) -> String {
        let mut content = json!({ "exp": claims.expires });
        if let Some(subject) = &claims.subject {
            content["sub"] = subject.as_str().into();
        }
        if let Some(not_before) = claims.not_before {
            content["nbf"] = not_before.into();
        }
        if !claims.targets.is_empty() {
            content["targets"] = claims.targets.clone().into();
        }
        if let Some(connections) = claims.connections {
            content["connections"] = connections.into();
        }
        let header = BASE64URL_NOPAD.encode(br#"{"alg":"HS256","typ":"JWT"}"#);
        let content = BASE64URL_NOPAD.encode(content.to_string().as_bytes());
        self.sign_text(&format!("{header}.{content}"))
    }

    pub(crate) fn sign_text(&self, signed: &str) -> String {
        let mac = self.mac.clone().chain_update(signed.as_bytes());
        let signature = BASE64URL_NOPAD.encode(&mac.finalize().into_bytes());
        format!("{signed}.{signature}")
    }

    /// Verifies a token and reads it. `now` in seconds since 1970.
    pub(crate) fn verify(
        &self,
        token: &str,
        now: u64,
        life_max: Duration,
    ) -> Result<Claims, TokenError> {
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, content) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        let signature = decode(signature)?;
        let mac = self.mac.clone().chain_update(signed.as_bytes());
        // In constant time.
        mac.verify_slice(&signature)
            .map_err(|_| TokenError::Signature)?;
        let header: Value = parse(header)?;
        if header["alg"] != "HS256" || !header["crit"].is_null() {
            return Err(TokenError::Malformed);
        }
        let claims = Claims::read(&parse(content)?)?;
        if claims.expires <= now {
            return Err(TokenError::Expired);
        }
        if claims.expires - now > life_max.as_secs() {
            return Err(TokenError::LivesTooLong);
        }
        if claims.not_before.is_some_and(|from| from > now + SKEW_MAX) {
            return Err(TokenError::TooEarly);
        }
        Ok(claims)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").finish_non_exhaustive()
    }
}

impl Claims {
    /// Good until `expires` (seconds since 1970) for all that the relay allows.
    pub const fn new(expires: u64) -> Self {
        Self {
            subject: None,
            expires,
            not_before: None,
            targets: Vec::new(),
            connections: None,
        }
    }

    /// Whether a relay would take them, as far as that does not depend on time.
    ///
    /// # Errors
    ///
    /// When a target is none, or there is more than a token may hold.
    pub fn check(&self) -> Result<(), TokenError> {
        let subject_len = self.subject.as_ref().map_or(0, String::len);
        if subject_len > SUBJECT_LEN_MAX || self.targets.len() > TARGETS_MAX {
            return Err(TokenError::Claim);
        }
        self.scope().map(drop)
    }

    fn read(content: &Value) -> Result<Self, TokenError> {
        let seconds = |name: &str| match &content[name] {
            Value::Null => Ok(None),
            value => value.as_u64().map(Some).ok_or(TokenError::Claim),
        };
        let subject = match &content["sub"] {
            Value::Null => None,
            Value::String(text) if text.len() <= SUBJECT_LEN_MAX => Some(text.clone()),
            _ => return Err(TokenError::Claim),
        };
        let targets = match &content["targets"] {
            Value::Null => Vec::new(),
            // An empty list would read as everything.
            Value::Array(targets) if (1..=TARGETS_MAX).contains(&targets.len()) => {
                let texts = targets
                    .iter()
                    .map(|target| target.as_str().map(str::to_owned));
                texts.collect::<Option<_>>().ok_or(TokenError::Claim)?
            }
            _ => return Err(TokenError::Claim),
        };
        let connections = match seconds("connections")? {
            None => None,
            Some(count) => Some(u32::try_from(count).map_err(|_| TokenError::Claim)?),
        };
        Ok(Self {
            subject,
            expires: seconds("exp")?.ok_or(TokenError::Claim)?,
            not_before: seconds("nbf")?,
            targets,
            connections,
        })
    }

    /// The targets as rules; none: all.
    pub(crate) fn scope(&self) -> Result<Option<AllowList>, TokenError> {
        if self.targets.is_empty() {
            return Ok(None);
        }
        let rules = self.targets.iter().map(|target| Rule::parse_scope(target));
        let rules: Result<AllowList, _> = rules.collect();
        rules.map(Some).map_err(|_| TokenError::Claim)
    }
}

fn decode(text: &str) -> Result<Vec<u8>, TokenError> {
    BASE64URL_NOPAD
        .decode(text.as_bytes())
        .map_err(|_| TokenError::Malformed)
}

fn parse(text: &str) -> Result<Value, TokenError> {
    serde_json::from_slice(&decode(text)?).map_err(|_| TokenError::Malformed)
}

/// Fewest bytes of a key: as many as the hash has (RFC 7518, section 3.2).
const KEY_LEN_MIN: usize = 32;

/// Seconds that clocks may be apart.
const SKEW_MAX: u64 = 30;

/// Most bytes of a subject.
const SUBJECT_LEN_MAX: usize = 256;

/// Most targets of one token.
const TARGETS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);
    const NOW: u64 = 1_800_000_000;

    fn key() -> SigningKey {
        SigningKey::new(b"0123456789abcdef0123456789abcdef").unwrap()
    }

    /// A token of any content, signed by [`key`].
    fn token(header: &str, content: &str) -> String {
        let signed = [header, content].map(|text| BASE64URL_NOPAD.encode(text.as_bytes()));
        key().sign_text(&signed.join("."))
    }

    #[test]
    fn reads_what_it_signs_and_what_others_spell_in_their_way() {
        let claims = Claims {
            subject: Some("page".to_owned()),
            targets: vec!["node1".to_owned(), "10.0.0.0/8:9042".to_owned()],
            connections: Some(2),
            ..Claims::new(NOW + 60)
        };
        let theirs = token(
            r#"{"typ": "JWT", "alg": "HS256"}"#,
            &format!(
                r#"{{"sub": "page", "exp": {}, "targets": ["node1", "10.0.0.0/8:9042"], "connections": 2, "iat": {NOW}}}"#,
                NOW + 60
            ),
        );
        assert_eq!(key().verify(&theirs, NOW, DAY), Ok(claims.clone()));
        assert_eq!(key().verify(&key().sign(&claims), NOW, DAY), Ok(claims));
    }

    #[test]
    fn other_signatures_and_algorithms_are_refused() {
        let good = key().sign(&Claims::new(NOW + 60));
        let other = SigningKey::new(&[7; 32]).unwrap();
        assert_eq!(other.verify(&good, NOW, DAY), Err(TokenError::Signature));
        let (signed, _) = good.rsplit_once('.').unwrap();
        assert_eq!(
            key().verify(&format!("{signed}."), NOW, DAY),
            Err(TokenError::Signature)
        );
        let exp = format!(r#"{{"exp":{}}}"#, NOW + 60);
        for header in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"HS512"}"#,
            r#"{"alg":"RS256"}"#,
            r#"{"alg":"HS256","crit":["x"]}"#,
            "{}",
            "[]",
            "7",
        ] {
            assert_eq!(
                key().verify(&token(header, &exp), NOW, DAY),
                Err(TokenError::Malformed),
                "{header}"
            );
        }
        for at in 0..good.len() {
            let mut bent = good.clone().into_bytes();
            bent[at] = if bent[at] == b'A' { b'B' } else { b'A' };
            let bent = String::from_utf8(bent).unwrap();
            assert!(key().verify(&bent, NOW, DAY).is_err(), "{bent}");
        }
        for text in ["", ".", "..", "a.b.c", "a.b.c.d", "é.é.é"] {
            assert!(key().verify(text, NOW, DAY).is_err(), "{text}");
        }
    }

    #[test]
    fn time_and_claims_are_checked() {
        let header = r#"{"alg":"HS256"}"#;
        for (content, error) in [
            (format!(r#"{{"exp":{NOW}}}"#), TokenError::Expired),
            (r#"{"exp":0}"#.to_owned(), TokenError::Expired),
            (
                format!(r#"{{"exp":{}}}"#, NOW + 86_401),
                TokenError::LivesTooLong,
            ),
            (
                format!(r#"{{"exp":{}}}"#, u64::MAX),
                TokenError::LivesTooLong,
            ),
            (
                format!(r#"{{"exp":{},"nbf":{}}}"#, NOW + 60, NOW + 31),
                TokenError::TooEarly,
            ),
            ("{}".to_owned(), TokenError::Claim),
            (r#"{"exp":"soon"}"#.to_owned(), TokenError::Claim),
            (r#"{"exp":-1}"#.to_owned(), TokenError::Claim),
            (r#"{"exp":1.5e300}"#.to_owned(), TokenError::Claim),
            (
                format!(r#"{{"exp":{},"targets":[]}}"#, NOW + 60),
                TokenError::Claim,
            ),
            (
                format!(r#"{{"exp":{},"targets":[1]}}"#, NOW + 60),
                TokenError::Claim,
            ),
            (
                format!(r#"{{"exp":{},"connections":4294967296}}"#, NOW + 60),
                TokenError::Claim,
            ),
        ] {
            assert_eq!(
                key().verify(&token(header, &content), NOW, DAY),
                Err(error),
                "{content}"
            );
        }
    }

    #[test]
    fn short_keys_are_no_keys() {
        assert!(SigningKey::new(&[1; 31]).is_none());
    }
}
