//! Where a client asks to go: `host:port`, or the alias of an allow rule alone.
//!
//! Only one spelling of an address is understood, the canonical one. Whatever a resolver or an
//! operating system might read as an address besides (`127.1`, `0x7f.1`, `2130706433`, zones,
//! escapes, letters outside ASCII) is refused before anything looks at it. Pure.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A wish to be connected, understood but not yet allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: Host,
    pub(crate) port: Option<u16>,
}

/// The part of a target before its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// A DNS name or an alias, in lower case, without a dot at its end.
    Name(Box<str>),
    Address(IpAddr),
}

/// Why a text is no target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetError {
    /// Nothing, or more than a target can be.
    Length,
    /// The port is missing, zero, or not a plain decimal number.
    Port,
    /// Not a host name.
    Host,
    /// An address that is not in its canonical spelling.
    AddressSpelling,
}

impl TargetError {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Length => "target is empty or too long",
            Self::Port => "target has no proper port",
            Self::Host => "target is no host name",
            Self::AddressSpelling => "target's address is not in its usual spelling",
        }
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl core::error::Error for TargetError {}

impl Target {
    /// Reads `name:port`, `a.b.c.d:port`, `[v6]:port` or an alias.
    pub(crate) fn parse(text: &str) -> Result<Self, TargetError> {
        if text.is_empty() || text.len() > TARGET_LEN_MAX {
            return Err(TargetError::Length);
        }
        let (host, port) = split_port(text)?;
        let host = Host::parse(host)?;
        if port.is_none() && matches!(host, Host::Address(_)) {
            return Err(TargetError::Port);
        }
        Ok(Self { host, port })
    }
}

impl Host {
    /// Reads a host; v6 addresses stand in brackets.
    pub(crate) fn parse(text: &str) -> Result<Self, TargetError> {
        if let Some(inside) = text.strip_prefix('[') {
            let inside = inside.strip_suffix(']').ok_or(TargetError::Host)?;
            let address: Ipv6Addr = inside.parse().map_err(|_| TargetError::AddressSpelling)?;
            return Ok(Self::Address(address.into()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.is_empty() || name.len() > NAME_LEN_MAX {
            return Err(TargetError::Host);
        }
        if name.split('.').any(|label| !is_label(label)) {
            return Err(TargetError::Host);
        }
        if ends_in_a_number(name) {
            return Err(TargetError::AddressSpelling);
        }
        Ok(Self::Name(name.to_ascii_lowercase().into()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.host.fmt(f)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

/// Splits the port off; none where there is no colon.
fn split_port(text: &str) -> Result<(&str, Option<u16>), TargetError> {
    let at = match text.rfind(']') {
        Some(end) => text[end..].find(':').map(|colon| end + colon),
        None => text.rfind(':'),
    };
    let Some(at) = at else {
        return Ok((text, None));
    };
    let port = port(&text[at + 1..]).ok_or(TargetError::Port)?;
    Ok((&text[..at], Some(port)))
}

/// A port that is not zero, without signs and leading zeros.
pub(crate) fn port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    is_plain.then(|| text.parse().ok()).flatten()
}

fn is_label(label: &str) -> bool {
    let is_within = (1..=63).contains(&label.len());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    is_within && label.bytes().all(is_plain) && !label.starts_with('-') && !label.ends_with('-')
}

/// What resolvers take for an address although it is not spelled as one: the rule of the URL
/// standard, section "host parsing".
fn ends_in_a_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    last.bytes().all(|byte| byte.is_ascii_digit())
        || hex.is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// A name, a colon and a port.
const TARGET_LEN_MAX: usize = 260;

/// Most characters of a DNS name.
const NAME_LEN_MAX: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_spellings_are_understood() {
        for (text, shown) in [
            ("db.example:9042", "db.example:9042"),
            ("DB.Example.:9042", "db.example:9042"),
            ("10.0.0.1:9042", "10.0.0.1:9042"),
            ("[::1]:1", "[::1]:1"),
            ("[2001:DB8::0001]:65535", "[2001:db8::1]:65535"),
            ("node-1", "node-1"),
            ("a_b.c:9042", "a_b.c:9042"),
        ] {
            assert_eq!(Target::parse(text).unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        use TargetError::{AddressSpelling, Host, Length, Port};
        for (text, error) in [
            ("", Length),
            (":9042", Host),
            ("db.example:", Port),
            ("db.example:0", Port),
            ("db.example:09042", Port),
            ("db.example:+9042", Port),
            ("db.example:65536", Port),
            ("db.example:9042 ", Port),
            ("10.0.0.1", Port),
            ("127.1:9042", AddressSpelling),
            ("0x7f.1:9042", AddressSpelling),
            ("0x7f000001:9042", AddressSpelling),
            ("0X7F000001:9042", AddressSpelling),
            ("2130706433:9042", AddressSpelling),
            ("017700000001:9042", AddressSpelling),
            ("127.0.0.01:9042", AddressSpelling),
            ("0177.0.0.1:9042", AddressSpelling),
            ("127.0.0.1.:9042", AddressSpelling),
            ("127.0.0.0x1:9042", AddressSpelling),
            ("256.0.0.1:9042", AddressSpelling),
            ("1.2.3.4.5:9042", AddressSpelling),
            ("::1:9042", Host),
            ("[::1%lo]:9042", AddressSpelling),
            ("[::1]x:9042", Host),
            ("[127.0.0.1]:9042", AddressSpelling),
            ("user@db.example:9042", Host),
            ("db.example/x:9042", Host),
            ("db.example\0:9042", Host),
            ("db..example:9042", Host),
            ("-db.example:9042", Host),
            ("%31%32%37.0.0.1:9042", AddressSpelling),
            ("\u{ff11}27.0.0.1:9042", Host),
            ("127\u{3002}0\u{3002}0\u{3002}1:9042", Host),
            ("\u{2460}27.example:9042", Host),
        ] {
            let found = Target::parse(text).expect_err(text);
            let is_expected = found == error || matches!((found, error), (Host, AddressSpelling));
            assert!(is_expected, "{text}: {found:?}");
        }
    }
}
