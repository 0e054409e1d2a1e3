//! What the relay may connect to. Nothing, unless a rule says so.
//!
//! A rule leads to a name or to a network, at ports of its own, and may have an alias that clients
//! use in its place. A target given as an address needs a rule for that address. A target given as
//! a name needs a rule for that name, and then **every** address that the name has is checked: one
//! in a [special block](crate::blocks) (loopback, private, link-local, …) needs a rule with a
//! network that lies in this very block. So `0.0.0.0/0` lets nobody into the own network, and a
//! name whose answers change leads nowhere new. Pure.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;

use ipnet::IpNet;

use crate::blocks::special;
use crate::target::{Host, Target, TargetError, port};

/// All rules.
#[derive(Clone, Debug, Default)]
pub struct AllowList {
    rules: Vec<Rule>,
}

/// Something that may be connected to: `HOST:PORTS`, `NETWORK:PORTS` or `ALIAS=HOST:PORTS`, where
/// ports are numbers and ranges with commas between, as in `10.0.0.0/8:9042,19042`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    alias: Option<Box<str>>,
    to: To,
    ports: Vec<RangeInclusive<u16>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum To {
    Name(Box<str>),
    Net(IpNet),
}

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleError {
    /// The text before the port is neither host nor network.
    Host(TargetError),
    /// A network whose address has bits behind its prefix, or a prefix that is too long.
    Network,
    /// An alias that is not a single label.
    Alias,
    /// Ports are missing or no ports.
    Ports,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host(error) => error.as_str(),
            Self::Network => "not a network: its address must end where its prefix does",
            Self::Alias => "an alias is one label and stands for one host",
            Self::Ports => "ports are numbers or ranges, such as 9042,19042 or 9042-9045",
        })
    }
}

impl core::error::Error for RuleError {}

/// A target that a rule lets through, as far as that is known before its name is resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Address(SocketAddr),
    Name(Box<str>, u16),
}

/// No rule lets it through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotAllowed {
    /// What the address is for, if that is the obstacle.
    pub(crate) block: Option<&'static str>,
}

impl fmt::Display for NotAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block {
            Some(what) => write!(f, "target not allowed: its address is {what}"),
            None => f.write_str("target not allowed"),
        }
    }
}

impl AllowList {
    /// Nothing is allowed.
    pub const fn new() -> Self {
        Self { rules: Vec::new() }
    }

    /// One more rule.
    pub fn push(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// Whether nothing is allowed.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Where the target leads, if any rule lets it through.
    pub(crate) fn judge(&self, target: &Target) -> Result<Destination, NotAllowed> {
        match (&target.host, target.port) {
            (Host::Address(address), Some(port)) => {
                self.check(*address, port, false)?;
                Ok(Destination::Address(SocketAddr::new(*address, port)))
            }
            (Host::Name(name), port) => {
                let found = self.rules.iter().find_map(|rule| rule.leads(name, port));
                found.ok_or(NotAllowed { block: None })
            }
            (Host::Address(_), None) => Err(NotAllowed { block: None }),
        }
    }

    /// Checks one address that is about to be dialled. `is_named`: a rule lets the name through
    /// that it was found by, so only special addresses need a rule of their own.
    pub(crate) fn check(
        &self,
        address: IpAddr,
        port: u16,
        is_named: bool,
    ) -> Result<(), NotAllowed> {
        let block = special(address);
        let lets_through = |rule: &Rule| match &rule.to {
            To::Name(_) => false,
            To::Net(net) => {
                net.contains(&address)
                    && rule.has_port(port)
                    && block.is_none_or(|block| block.net.contains(net))
            }
        };
        if (is_named && block.is_none()) || self.rules.iter().any(lets_through) {
            return Ok(());
        }
        let block = block.map(|block| block.what);
        Err(NotAllowed { block })
    }

    /// Whether the words of a token name this target. That the relay allows it too is another
    /// question.
    pub(crate) fn names(&self, target: &Target) -> bool {
        self.rules.iter().any(|rule| {
            let fits_port = target.port.is_none_or(|port| rule.has_port(port));
            match (&target.host, &rule.to) {
                (Host::Name(name), To::Name(named)) => name == named && fits_port,
                (Host::Address(address), To::Net(net)) => {
                    let block = special(*address);
                    let is_named = block.is_none_or(|block| block.net.contains(net));
                    net.contains(address) && is_named && fits_port
                }
                _ => false,
            }
        })
    }
}

impl FromIterator<Rule> for AllowList {
    fn from_iter<T: IntoIterator<Item = Rule>>(rules: T) -> Self {
        let rules = rules.into_iter().collect();
        Self { rules }
    }
}

impl Rule {
    /// Reads a rule.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let (alias, rest) = match text.split_once('=') {
            Some((alias, rest)) => (Some(parse_alias(alias)?), rest),
            None => (None, text),
        };
        let (host, ports) = split(rest)?;
        let to = To::parse(host)?;
        let is_one = match &to {
            To::Name(_) => true,
            To::Net(net) => net.prefix_len() == net.max_prefix_len(),
        };
        if alias.is_some() && !is_one {
            return Err(RuleError::Alias);
        }
        Ok(Self {
            alias,
            to,
            ports: parse_ports(ports)?,
        })
    }

    /// The same for the words of a token, where an alias or a name may stand without ports.
    pub(crate) fn parse_scope(text: &str) -> Result<Self, RuleError> {
        match Host::parse(text) {
            Ok(Host::Name(name)) => Ok(Self {
                alias: None,
                to: To::Name(name),
                ports: vec![1..=u16::MAX],
            }),
            _ => match Self::parse(text)? {
                Self { alias: Some(_), .. } => Err(RuleError::Alias),
                rule => Ok(rule),
            },
        }
    }

    fn has_port(&self, port: u16) -> bool {
        self.ports.iter().any(|range| range.contains(&port))
    }

    /// Where a name leads by this rule. An alias without a port leads to the rule's first.
    fn leads(&self, name: &str, port: Option<u16>) -> Option<Destination> {
        let is_alias = self.alias.as_deref() == Some(name);
        let port = match port {
            Some(port) => port,
            None if is_alias => *self.ports.first()?.start(),
            None => return None,
        };
        if !self.has_port(port) {
            return None;
        }
        match &self.to {
            To::Name(named) if is_alias || **named == *name => {
                Some(Destination::Name(named.clone(), port))
            }
            To::Net(net) if is_alias => {
                Some(Destination::Address(SocketAddr::new(net.addr(), port)))
            }
            _ => None,
        }
    }
}

impl To {
    fn parse(text: &str) -> Result<Self, RuleError> {
        if let Some((address, len)) = text.split_once('/') {
            // [fd00::/8] and [fd00::]/8 are the same.
            let (address, len) = match len.strip_suffix(']') {
                Some(len) => (format!("{address}]"), len),
                None => (address.to_owned(), len),
            };
            let Host::Address(address) = Host::parse(&address).map_err(RuleError::Host)? else {
                return Err(RuleError::Network);
            };
            let len = len.parse().map_err(|_| RuleError::Network)?;
            let net = IpNet::new(address, len).map_err(|_| RuleError::Network)?;
            return match net.trunc() == net {
                true => Ok(Self::Net(net)),
                false => Err(RuleError::Network),
            };
        }
        Ok(match Host::parse(text).map_err(RuleError::Host)? {
            Host::Name(name) => Self::Name(name),
            Host::Address(address) => Self::Net(address.into()),
        })
    }
}

impl core::str::FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        Self::parse(text)
    }
}

/// Host or network, and ports.
fn split(text: &str) -> Result<(&str, &str), RuleError> {
    let colon = text.rfind(':').ok_or(RuleError::Ports)?;
    let (host, ports) = text.split_at(colon);
    Ok((host, ports.get(1..).unwrap_or_default()))
}

fn parse_alias(text: &str) -> Result<Box<str>, RuleError> {
    match Host::parse(text) {
        Ok(Host::Name(name)) if !name.contains('.') => Ok(name),
        _ => Err(RuleError::Alias),
    }
}

fn parse_ports(text: &str) -> Result<Vec<RangeInclusive<u16>>, RuleError> {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let range = port(first)?..=port(last)?;
        (!range.is_empty()).then_some(range)
    };
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    ranges.ok_or(RuleError::Ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(rules: &[&str]) -> AllowList {
        rules
            .iter()
            .map(|rule| Rule::parse(rule).unwrap())
            .collect()
    }

    fn judge(list: &AllowList, target: &str) -> Option<String> {
        let target = Target::parse(target).ok()?;
        match list.judge(&target).ok()? {
            Destination::Address(address) => Some(address.to_string()),
            Destination::Name(name, port) => Some(format!("{name} {port}")),
        }
    }

    #[test]
    fn nothing_is_allowed_by_default() {
        let nothing = AllowList::new();
        for target in ["127.0.0.1:9042", "8.8.8.8:9042", "db.example:9042", "node"] {
            assert_eq!(judge(&nothing, target), None);
        }
        assert!(
            nothing
                .check("8.8.8.8".parse().unwrap(), 9042, false)
                .is_err()
        );
    }

    #[test]
    fn rules_lead_where_they_say() {
        let list = list(&[
            "db.example:9042",
            "10.0.0.0/8:9042,19042",
            "node1=10.9.9.9:9042-9045",
            "far=db.elsewhere:9142",
            "[fd00::]/8:9042",
        ]);
        for (target, leads) in [
            ("db.example:9042", Some("db.example 9042")),
            ("DB.EXAMPLE.:9042", Some("db.example 9042")),
            ("db.example:9043", None),
            ("db.example", None),
            ("sub.db.example:9042", None),
            ("10.1.2.3:19042", Some("10.1.2.3:19042")),
            ("10.1.2.3:9043", None),
            ("11.1.2.3:9042", None),
            ("node1", Some("10.9.9.9:9042")),
            ("node1:9045", Some("10.9.9.9:9045")),
            ("node1:9046", None),
            ("far", Some("db.elsewhere 9142")),
            ("db.elsewhere:9142", Some("db.elsewhere 9142")),
            ("[fd12::1]:9042", Some("[fd12::1]:9042")),
            ("[fe80::1]:9042", None),
            ("[::ffff:10.1.2.3]:9042", None),
        ] {
            assert_eq!(judge(&list, target).as_deref(), leads, "{target}");
        }
    }

    #[test]
    fn special_blocks_must_be_named() {
        let everything = list(&["0.0.0.0/0:9042", "[::]/0:9042"]);
        let private = list(&["10.0.0.0/8:9042", "192.168.0.0/15:9042"]);
        for (list, address, is_allowed) in [
            (&everything, "8.8.8.8", true),
            (&everything, "127.0.0.1", false),
            (&everything, "169.254.169.254", false),
            (&everything, "::1", false),
            (&everything, "::ffff:8.8.8.8", false),
            (&everything, "2606:4700::1", true),
            (&private, "10.0.0.1", true),
            // This rule is wider than the private block and so does not name it.
            (&private, "192.168.0.1", false),
            (&private, "192.169.0.1", true),
        ] {
            let found = list.check(address.parse().unwrap(), 9042, false);
            assert_eq!(found.is_ok(), is_allowed, "{address}");
        }
    }

    #[test]
    fn addresses_of_an_allowed_name_are_checked() {
        let list = list(&["db.example:9042", "10.0.0.0/8:9042"]);
        for (address, is_allowed) in [
            ("8.8.8.8", true),
            ("10.0.0.1", true),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("fd00:ec2::254", false),
        ] {
            let found = list.check(address.parse().unwrap(), 9042, true);
            assert_eq!(found.is_ok(), is_allowed, "{address}");
        }
    }

    #[test]
    fn what_is_no_rule_is_told() {
        for (text, error) in [
            ("db.example", RuleError::Ports),
            ("db.example:", RuleError::Ports),
            ("db.example:9042-9041", RuleError::Ports),
            ("db.example:0", RuleError::Ports),
            ("db.example:1,,2", RuleError::Ports),
            ("*:9042", RuleError::Host(TargetError::Host)),
            ("127.1:9042", RuleError::Host(TargetError::AddressSpelling)),
            ("10.0.0.1/8:9042", RuleError::Network),
            ("10.0.0.0/33:9042", RuleError::Network),
            ("db.example/8:9042", RuleError::Network),
            ("a.b=10.0.0.1:9042", RuleError::Alias),
            ("net=10.0.0.0/8:9042", RuleError::Alias),
        ] {
            assert_eq!(Rule::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn tokens_name_targets() {
        let scope = |texts: &[&str]| -> AllowList {
            texts
                .iter()
                .map(|text| Rule::parse_scope(text).unwrap())
                .collect()
        };
        let list = scope(&["node1", "db.example:9042", "10.0.0.0/8:9042"]);
        for (target, is_named) in [
            ("node1", true),
            ("node1:9042", true),
            ("node2:9042", false),
            ("db.example:9042", true),
            ("db.example:19042", false),
            ("10.0.0.1:9042", true),
            ("11.0.0.1:9042", false),
            ("127.0.0.1:9042", false),
        ] {
            assert_eq!(
                list.names(&Target::parse(target).unwrap()),
                is_named,
                "{target}"
            );
        }
        assert!(!scope(&["0.0.0.0/0:9042"]).names(&Target::parse("127.0.0.1:9042").unwrap()));
        assert_eq!(Rule::parse_scope("a=10.0.0.1:9042"), Err(RuleError::Alias));
    }
}
