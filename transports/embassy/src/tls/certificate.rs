//! What a server's certificate must be: an X.509 certificate (RFC 5280) with an ECDSA signature on
//! P-256 of the one authority that the firmware trusts, for the name or address that was dialed.
//!
//! Stricter than the verifier that comes with embedded-tls, and smaller: the certificate must be
//! signed by the trusted one itself, so that no other certificate of the authority can be used as an
//! intermediate one; names are those of the subject's alternative names only, with addresses among
//! them and without a limit to their number; a certificate for another purpose or with an unknown
//! critical extension is refused; each reason has its own [`TlsFailure`]. Of the certificate nothing
//! is kept but its key.

use core::net::IpAddr;

use messina_core::error::TlsFailure;
use p256::ecdsa::signature::Verifier as _;
use p256::ecdsa::{Signature, VerifyingKey};

const SEQUENCE: u8 = 0x30;
const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xA0;
const EXTENSIONS: u8 = 0xA3;
/// `dNSName` and `iPAddress` of a `GeneralName`.
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;

/// `ecdsa-with-SHA256`, as an algorithm without parameters.
const ECDSA_SHA256: &[u8] = &[0x06, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 2];
/// `id-ecPublicKey` on `prime256v1`.
const P256_KEY: &[u8] = &[
    0x06, 7, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1, 0x06, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7,
];
const KEY_USAGE: &[u8] = &[0x55, 0x1D, 15];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1D, 17];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1D, 19];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1D, 37];
const SERVER_AUTH: &[u8] = &[0x2B, 6, 1, 5, 5, 7, 3, 1];
const ANY_USAGE: &[u8] = &[0x55, 0x1D, 37, 0];

/// A certificate that the firmware trusts: the authority that signed those of the nodes, or a
/// node's own one if it is signed by itself.
#[derive(Clone, Copy, Debug)]
pub struct Authority<'d> {
    name: &'d [u8],
    key: VerifyingKey,
}

impl<'d> Authority<'d> {
    /// Reads a certificate in DER, as `openssl x509 -outform der` writes it.
    ///
    /// # Errors
    ///
    /// [`TlsFailure::BadCertificate`] if it is none, or its key is not an ECDSA key on P-256.
    pub fn from_der(der: &'d [u8]) -> Result<Self, TlsFailure> {
        let parsed = Certificate::parse(der).ok_or(TlsFailure::BadCertificate)?;
        Ok(Self {
            name: parsed.subject,
            key: parsed.key()?,
        })
    }

    /// Checks a server's certificate; gives its key. `now` in seconds of Unix time; without it the
    /// time is not checked.
    pub(super) fn check(
        &self,
        der: &[u8],
        name: &PeerName<'_>,
        now: Option<u64>,
    ) -> Result<VerifyingKey, TlsFailure> {
        let parsed = Certificate::parse(der).ok_or(TlsFailure::BadCertificate)?;
        let signature =
            Signature::from_der(parsed.signature).map_err(|_| TlsFailure::BadCertificate)?;
        let is_theirs = parsed.issuer == self.name;
        if !is_theirs || self.key.verify(parsed.signed, &signature).is_err() {
            return Err(TlsFailure::UnknownIssuer);
        }
        if let Some(now) = now {
            if now < parsed.not_before {
                return Err(TlsFailure::NotYetValid);
            }
            if now > parsed.not_after {
                return Err(TlsFailure::Expired);
            }
        }
        let usable = parsed
            .names_for_server()
            .ok_or(TlsFailure::BadCertificate)?;
        if !usable.is_some_and(|names| names.clone().any(|(tag, value)| name.is(tag, value))) {
            return Err(TlsFailure::NameMismatch);
        }
        parsed.key()
    }
}

/// Whom the certificate must be for.
#[derive(Clone, Copy, Debug)]
pub(super) enum PeerName<'a> {
    Dns(&'a str),
    Ip(IpAddr),
}

impl PeerName<'_> {
    /// Whether this alternative name is the one, by RFC 6125: letters of any case, and one label
    /// for the star of `*.some.domain`.
    fn is(&self, tag: u8, value: &[u8]) -> bool {
        match *self {
            Self::Ip(IpAddr::V4(address)) => tag == IP_ADDRESS && value == address.octets(),
            Self::Ip(IpAddr::V6(address)) => tag == IP_ADDRESS && value == address.octets(),
            Self::Dns(name) if tag == DNS_NAME && !name.is_empty() => {
                let name = name.as_bytes();
                match value.strip_prefix(b"*.") {
                    Some(domain) => {
                        let mut parts = name.splitn(2, |byte| *byte == b'.');
                        let label = parts.next().unwrap_or_default();
                        let rest = parts.next().unwrap_or_default();
                        domain.contains(&b'.')
                            && !label.is_empty()
                            && rest.eq_ignore_ascii_case(domain)
                    }
                    None => name.eq_ignore_ascii_case(value),
                }
            }
            Self::Dns(_) => false,
        }
    }
}

/// The parts of a certificate that matter here.
struct Certificate<'a> {
    /// The bytes under the signature.
    signed: &'a [u8],
    signature: &'a [u8],
    issuer: &'a [u8],
    subject: &'a [u8],
    not_before: u64,
    not_after: u64,
    key_algorithm: &'a [u8],
    public_key: &'a [u8],
    extensions: Der<'a>,
}

impl<'a> Certificate<'a> {
    fn parse(der: &'a [u8]) -> Option<Self> {
        let mut outer = Der(der);
        let mut certificate = Der(outer.expect(SEQUENCE)?);
        let from = certificate;
        let body = certificate.expect(SEQUENCE)?;
        let signed = from.before(certificate)?;
        let algorithm = certificate.expect(SEQUENCE)?;
        let signature = certificate.expect_bits()?;
        if !outer.is_empty() || !certificate.is_empty() {
            return None;
        }
        let mut body = Der(body);
        // Version 3, which is counted from zero; others have no extensions and so no names.
        if body.expect(VERSION)? != [INTEGER, 1, 2] {
            return None;
        }
        body.expect(INTEGER)?;
        let same_algorithm = body.expect(SEQUENCE)?;
        if algorithm != ECDSA_SHA256 || same_algorithm != ECDSA_SHA256 {
            return None;
        }
        let issuer = body.expect(SEQUENCE)?;
        let mut validity = Der(body.expect(SEQUENCE)?);
        let (not_before, not_after) = (validity.expect_time()?, validity.expect_time()?);
        let subject = body.expect(SEQUENCE)?;
        let mut key = Der(body.expect(SEQUENCE)?);
        let (key_algorithm, public_key) = (key.expect(SEQUENCE)?, key.expect_bits()?);
        let mut extensions = Der(&[]);
        for (tag, value) in body.by_ref() {
            if tag == EXTENSIONS {
                extensions = Der(Der(value).expect(SEQUENCE)?);
            }
        }
        body.is_empty().then_some(Self {
            signed,
            signature,
            issuer,
            subject,
            not_before,
            not_after,
            key_algorithm,
            public_key,
            extensions,
        })
    }

    fn key(&self) -> Result<VerifyingKey, TlsFailure> {
        let unusable = TlsFailure::BadCertificate;
        if self.key_algorithm != P256_KEY {
            return Err(unusable);
        }
        VerifyingKey::from_sec1_bytes(self.public_key).map_err(|_| unusable)
    }

    /// The alternative names, if there are any. Outer `None`: broken, or not meant for a server.
    fn names_for_server(&self) -> Option<Option<Der<'a>>> {
        let (mut names, mut extensions) = (None, self.extensions);
        while !extensions.is_empty() {
            let mut extension = Der(extensions.expect(SEQUENCE)?);
            let identifier = extension.expect(OBJECT_IDENTIFIER)?;
            let mut content = extension.next()?;
            let is_critical = content.0 == BOOLEAN && content.1 != [0];
            if content.0 == BOOLEAN {
                content = extension.next()?;
            }
            let mut value = Der((content.0 == OCTET_STRING).then_some(content.1)?);
            match identifier {
                SUBJECT_ALT_NAME => names = Some(Der(value.expect(SEQUENCE)?)),
                KEY_USAGE => {
                    // The first bit of the first byte: digital signatures.
                    let (_unused, bits) = value.expect(BIT_STRING)?.split_first()?;
                    (bits.first()? & 0x80 != 0).then_some(())?;
                }
                EXTENDED_KEY_USAGE => {
                    let mut usages = Der(value.expect(SEQUENCE)?);
                    usages
                        .any(|(_, usage)| usage == SERVER_AUTH || usage == ANY_USAGE)
                        .then_some(())?;
                }
                BASIC_CONSTRAINTS => {}
                _ if is_critical => return None,
                _ => {}
            }
        }
        Some(names)
    }
}

/// Elements of DER, one after the other. Ends early at what is not DER; whoever must not miss that
/// looks at [`Self::is_empty`] afterwards.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Iterator for Der<'a> {
    type Item = (u8, &'a [u8]);

    /// Tag and content. Lengths above 65535 bytes do not occur in a record of TLS.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (len, rest) = match *self.0.get(1..)? {
            [len @ 0..=0x7F, ref rest @ ..] => (usize::from(len), rest),
            [0x81, len @ 0x80..=0xFF, ref rest @ ..] => (usize::from(len), rest),
            [0x82, high @ 1..=0xFF, low, ref rest @ ..] => {
                (usize::from(u16::from_be_bytes([high, low])), rest)
            }
            _ => return None,
        };
        // Tags of several bytes do not occur either.
        let tag = self.0.first().copied().filter(|tag| tag & 0x1F != 0x1F)?;
        let (content, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some((tag, content))
    }
}

impl<'a> Der<'a> {
    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn expect(&mut self, wanted: u8) -> Option<&'a [u8]> {
        let (tag, content) = self.next()?;
        (tag == wanted).then_some(content)
    }

    /// The bytes that were read to come from here to `later`.
    fn before(&self, later: Self) -> Option<&'a [u8]> {
        self.0.get(..self.0.len().checked_sub(later.0.len())?)
    }

    /// A string of whole bytes.
    fn expect_bits(&mut self) -> Option<&'a [u8]> {
        self.expect(BIT_STRING)?.strip_prefix(&[0])
    }

    /// Seconds of Unix time, 0 for what was before.
    fn expect_time(&mut self) -> Option<u64> {
        let (tag, digits) = self.next()?;
        let digits = digits.strip_suffix(b"Z")?;
        let two = |at: usize| {
            let pair = digits.get(at..at.checked_add(2)?)?;
            let value = |digit: u8| digit.is_ascii_digit().then(|| u64::from(digit - b'0'));
            Some(value(pair[0])? * 10 + value(pair[1])?)
        };
        let (year, at) = match (tag, digits.len()) {
            (UTC_TIME, 12) if two(0)? < 50 => (2000 + two(0)?, 2),
            (UTC_TIME, 12) => (1900 + two(0)?, 2),
            (GENERALIZED_TIME, 14) => (two(0)? * 100 + two(2)?, 4),
            _ => return None,
        };
        let days = days_since_1970(year, two(at)?, two(at + 2)?)?;
        let (hours, minutes, seconds) = (two(at + 4)?, two(at + 6)?, two(at + 8)?);
        Some(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
    }
}

/// Days from the start of Unix time to a day of the Gregorian calendar; 0 for earlier ones.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    const BEFORE_MONTH: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let before = BEFORE_MONTH.get(usize::try_from(month.checked_sub(1)?).ok()?)?;
    let leap_days = |years: u64| years / 4 - years / 100 + years / 400;
    // The leap day of this year counts from March on.
    let counted = if month > 2 {
        year
    } else {
        year.checked_sub(1)?
    };
    let days = (year * 365 + leap_days(counted) + before + day).checked_sub(1)?;
    Some(days.saturating_sub(1970 * 365 + leap_days(1969)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{
        BasicConstraints, CertificateParams, CustomExtension, ExtendedKeyUsagePurpose, IsCa,
        Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P384_SHA384, date_time_ymd,
    };

    const NAMES: [&str; 5] = ["a.test", "b.test", "*.plant.test", "10.0.0.7", "fd00::7"];

    struct Signer {
        issuer: Issuer<'static, KeyPair>,
        der: Vec<u8>,
    }

    impl Signer {
        fn new() -> Self {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().unwrap();
            let der = params.self_signed(&key).unwrap().der().to_vec();
            let issuer = Issuer::new(params, key);
            Self { issuer, der }
        }

        fn sign(&self, change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(NAMES.map(String::from)).unwrap();
            change(&mut params);
            params.signed_by(&key, &self.issuer).unwrap().der().to_vec()
        }

        fn check(&self, der: &[u8], name: &PeerName<'_>) -> Result<(), TlsFailure> {
            let authority = Authority::from_der(&self.der).unwrap();
            authority.check(der, name, None).map(|_| ())
        }
    }

    #[test]
    fn all_names_and_addresses_count_and_no_others() {
        let signer = Signer::new();
        let der = signer.sign(|_| {});
        let ip = |text: &str| PeerName::Ip(text.parse().unwrap());
        for name in [
            PeerName::Dns("a.test"),
            PeerName::Dns("B.TEST"),
            PeerName::Dns("n7.plant.test"),
            ip("10.0.0.7"),
            ip("fd00::7"),
        ] {
            assert_eq!(signer.check(&der, &name), Ok(()), "{name:?}");
        }
        for name in [
            PeerName::Dns(""),
            PeerName::Dns("test"),
            PeerName::Dns("a.test."),
            PeerName::Dns(".plant.test"),
            PeerName::Dns("a.b.plant.test"),
            PeerName::Dns("10.0.0.7"),
            ip("10.0.0.8"),
            ip("::ffff:10.0.0.7"),
            // The common name that rcgen gives.
            PeerName::Dns("rcgen self signed cert"),
        ] {
            let refused = Err(TlsFailure::NameMismatch);
            assert_eq!(signer.check(&der, &name), refused, "{name:?}");
        }
    }

    #[test]
    fn the_star_covers_no_top_level() {
        let star = |domain: &str, name: &str| PeerName::Dns(name).is(DNS_NAME, domain.as_bytes());
        assert!(star("*.a.test", "n.a.test"));
        assert!(!star("*.test", "a.test"));
        assert!(!star("*", "a"));
        assert!(!star("n*.a.test", "n1.a.test"));
    }

    #[test]
    fn a_certificate_for_something_else_is_refused() {
        let signer = Signer::new();
        let name = PeerName::Dns("a.test");
        let extension = |critical: bool| {
            let mut extension = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 9], vec![5, 0]);
            extension.set_criticality(critical);
            extension
        };
        let unusable = Err(TlsFailure::BadCertificate);
        type Change = Box<dyn FnOnce(&mut CertificateParams)>;
        let cases: [(Change, _); 7] = [
            (
                Box::new(|params| {
                    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
                    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
                }),
                Ok(()),
            ),
            (
                Box::new(|params| {
                    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
                }),
                unusable,
            ),
            (
                Box::new(|params| params.key_usages = vec![KeyUsagePurpose::KeyCertSign]),
                unusable,
            ),
            (
                Box::new(move |params| params.custom_extensions = vec![extension(false)]),
                Ok(()),
            ),
            (
                Box::new(move |params| params.custom_extensions = vec![extension(true)]),
                unusable,
            ),
            (
                Box::new(|params| params.subject_alt_names = Vec::new()),
                Err(TlsFailure::NameMismatch),
            ),
            // Without a clock nothing is known of the time.
            (
                Box::new(|params| params.not_after = date_time_ymd(2001, 1, 1)),
                Ok(()),
            ),
        ];
        for (at, (change, expected)) in cases.into_iter().enumerate() {
            let der = signer.sign(change);
            assert_eq!(signer.check(&der, &name), expected, "case {at}");
        }
    }

    #[test]
    fn only_the_authority_itself_signs() {
        let (signer, other) = (Signer::new(), Signer::new());
        let name = PeerName::Dns("a.test");
        let unknown = Err(TlsFailure::UnknownIssuer);
        // The same name, another key.
        assert_eq!(signer.check(&other.sign(|_| {}), &name), unknown);
        // One of its certificates is no authority.
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(NAMES.map(String::from)).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "between");
        let middle = Issuer::new(params, key);
        let end = KeyPair::generate().unwrap();
        let below = CertificateParams::new(NAMES.map(String::from)).unwrap();
        let below = below.signed_by(&end, &middle).unwrap();
        assert_eq!(signer.check(below.der(), &name), unknown);
        // A certificate that is trusted itself needs no other.
        let own = KeyPair::generate().unwrap();
        let params = CertificateParams::new(NAMES.map(String::from)).unwrap();
        let own = params.self_signed(&own).unwrap();
        let authority = Authority::from_der(own.der()).unwrap();
        assert!(authority.check(own.der(), &name, None).is_ok());
    }

    #[test]
    fn keys_of_another_kind_are_no_authority() {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
        let params = CertificateParams::new(Vec::new()).unwrap();
        let der = params.self_signed(&key).unwrap().der().to_vec();
        let unusable = TlsFailure::BadCertificate;
        for der in [&der[..], b"", b"-----BEGIN CERTIFICATE-----"] {
            assert_eq!(Authority::from_der(der).map(|_| ()), Err(unusable));
        }
    }

    #[test]
    fn no_changed_byte_goes_unnoticed_and_none_makes_it_panic() {
        let signer = Signer::new();
        let (der, name) = (signer.sign(|_| {}), PeerName::Dns("a.test"));
        for at in 0..der.len() {
            for flip in [1, 0x80, 0xFF] {
                let mut changed = der.clone();
                changed[at] ^= flip;
                // Checking signatures takes long without optimisation: a part of them.
                if flip == 1 && at % 5 == 0 {
                    assert!(signer.check(&changed, &name).is_err(), "byte {at}");
                }
                if let Some(parsed) = Certificate::parse(&changed) {
                    let _ = parsed.names_for_server();
                    let _ = parsed.key();
                }
            }
            assert!(Certificate::parse(&der[..at]).is_none(), "cut at {at}");
        }
        let mut longer = der;
        longer.push(0);
        assert!(Certificate::parse(&longer).is_none());
    }

    #[test]
    fn times_are_read_as_the_standard_writes_them() {
        let read = |tag: u8, text: &[u8]| {
            let der = [&[tag, text.len() as u8], text].concat();
            Der(&der).expect_time()
        };
        for (tag, text, expected) in [
            (UTC_TIME, &b"700101000000Z"[..], Some(0)),
            (
                UTC_TIME,
                b"700102030405Z",
                Some(86_400 + 3 * 3_600 + 4 * 60 + 5),
            ),
            (UTC_TIME, b"491231235959Z", Some(2_524_607_999)),
            (UTC_TIME, b"000229000000Z", Some(951_782_400)),
            (UTC_TIME, b"000301000000Z", Some(951_868_800)),
            (UTC_TIME, b"240301000000Z", Some(1_709_251_200)),
            (GENERALIZED_TIME, b"20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, b"21000301000000Z", Some(4_107_542_400)),
            (GENERALIZED_TIME, b"99991231235959Z", Some(253_402_300_799)),
            (UTC_TIME, b"500101000000Z", Some(0)),
            (UTC_TIME, b"7001010000Z", None),
            (UTC_TIME, b"700001000000Z", None),
            (UTC_TIME, b"701301000000Z", None),
            (UTC_TIME, b"70010100000xZ", None),
            (UTC_TIME, b"700101000000+", None),
            (GENERALIZED_TIME, b"700101000000Z", None),
            (INTEGER, b"700101000000Z", None),
        ] {
            assert_eq!(read(tag, text), expected, "{}", text.escape_ascii());
        }
    }
}
