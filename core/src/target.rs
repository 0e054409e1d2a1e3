//! Where a link leads and what is wished of it: plain data that the control plane decides and a
//! transport carries out.

use alloc::string::String;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU16;

use crate::digits::put_number;
use crate::time::Instant;
use crate::words::{put, put_digit};

/// A host name, a Unix socket path or a relay's alias. Without feature `names` there can be none, so that
/// what is done with one takes no code.
#[cfg(any(test, feature = "names"))]
pub type Name = crate::sync::Local<str>;
#[cfg(not(any(test, feature = "names")))]
pub use nameless::Name;

#[cfg(not(any(test, feature = "names")))]
mod nameless {
    use core::convert::Infallible;
    use core::{fmt, ops};

    /// A name, of which there is none without feature `names`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Name(Infallible);

    impl ops::Deref for Name {
        type Target = str;

        fn deref(&self) -> &str {
            match self.0 {}
        }
    }

    impl fmt::Display for Name {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self.0 {}
        }
    }
}

/// A name, where there can be one.
#[cfg(any(test, feature = "names"))]
pub(crate) fn name(text: &str) -> Option<Name> {
    Some(Name::from(text))
}

/// A name, where there can be one.
#[cfg(not(any(test, feature = "names")))]
pub(crate) const fn name(_: &str) -> Option<Name> {
    None
}

/// Where a link leads.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Endpoint {
    /// An address and port.
    Addr(SocketAddr),
    /// A name that the transport (or a relay behind it) resolves itself.
    Name {
        /// The host name.
        host: Name,
        /// The port.
        port: u16,
    },
    /// Something only the transport understands: a Unix socket path, a relay alias.
    Local(Name),
}

impl Clone for Endpoint {
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn clone(&self) -> Self {
        match self {
            Self::Addr(addr) => Self::Addr(*addr),
            Self::Name { host, port } => Self::Name {
                host: host.clone(),
                port: *port,
            },
            Self::Local(name) => Self::Local(name.clone()),
        }
    }
}

impl Endpoint {
    /// Appends it as it is shown, without the library's formatting, which small images do without.
    pub(crate) fn put_text(&self, text: &mut String) {
        let port = match self {
            Self::Addr(addr) => {
                put_ip(text, addr.ip());
                addr.port()
            }
            Self::Name { host, port } => {
                // An address may stand in a name's place.
                let (open, close) = match host.as_bytes().contains(&b':') {
                    true => ("[", "]"),
                    false => ("", ""),
                };
                put(text, open);
                put(text, host);
                put(text, close);
                *port
            }
            Self::Local(name) => return put(text, name),
        };
        put(text, ":");
        put_number(text, u64::from(port));
    }

    /// It as it is shown, but for the short forms of IPv6. Small images do without the library's
    /// formatting, by which [`Display`](fmt::Display) writes the same.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.put_text(&mut text);
        text
    }
}

/// Without the shorter forms of version 6.
fn put_ip(text: &mut String, ip: IpAddr) {
    match ip {
        IpAddr::V4(ip) => {
            let mut separator = "";
            for octet in ip.octets() {
                put(text, separator);
                separator = ".";
                put_number(text, u64::from(octet));
            }
        }
        IpAddr::V6(ip) => {
            let mut separator = "[";
            for octets in ip.octets().as_chunks::<2>().0 {
                put(text, separator);
                separator = ":";
                for octet in octets {
                    put_digit(text, u32::from(octet >> 4));
                    put_digit(text, u32::from(*octet));
                }
            }
            put(text, "]");
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addr(addr) => put_address(f, addr),
            Self::Name { host, port } => write!(f, "{host}:{port}"),
            Self::Local(name) => f.write_str(name),
        }
    }
}

/// An address and its port in the form that the library gives them. It would pad them too if it were
/// asked, by buffers of a size for each kind: two kilobytes of code on wasm32.
fn put_address(f: &mut fmt::Formatter<'_>, addr: &SocketAddr) -> fmt::Result {
    match addr {
        SocketAddr::V4(v4) => put_octets(f, v4.ip().octets())?,
        SocketAddr::V6(v6) => {
            f.write_str("[")?;
            match v6.ip().to_ipv4_mapped() {
                Some(mapped) => {
                    f.write_str("::ffff:")?;
                    put_octets(f, mapped.octets())?;
                }
                None => put_segments(f, v6.ip().segments())?,
            }
            if v6.scope_id() > 0 {
                write!(f, "%{}", v6.scope_id())?;
            }
            f.write_str("]")?;
        }
    }
    write!(f, ":{}", addr.port())
}

fn put_octets(f: &mut fmt::Formatter<'_>, octets: [u8; 4]) -> fmt::Result {
    let mut dot = "";
    for octet in octets {
        write!(f, "{dot}{octet}")?;
        dot = ".";
    }
    Ok(())
}

/// The first of the longest runs of two or more zeros is left out.
fn put_segments(f: &mut fmt::Formatter<'_>, segments: [u16; 8]) -> fmt::Result {
    let (mut gap, mut gap_len, mut run) = (8, 1, 0);
    for (end, segment) in (1..).zip(segments) {
        run = if segment == 0 { run + 1 } else { 0 };
        if run > gap_len {
            (gap, gap_len) = (end - run, run);
        }
    }
    let mut colon = "";
    for (at, segment) in segments.into_iter().enumerate() {
        if at == gap {
            f.write_str("::")?;
            colon = "";
        } else if at < gap || at >= gap + gap_len {
            write!(f, "{colon}{segment:x}")?;
            colon = ":";
        }
    }
    Ok(())
}

/// A wish about the source port of a link. It is never more than a wish: the shard that the node
/// reports in SUPPORTED is the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Steering {
    /// Any source port.
    #[default]
    None,
    /// Exactly this one; fails with [`PORT_IN_USE`](crate::error::LinkError::PORT_IN_USE) if it is taken. Asked only of
    /// transports whose `Transport::steering` is [`SteeringKind::ExactPort`].
    Port(NonZeroU16),
    /// Any port that is `shard` modulo `of`. Asked only of transports whose
    /// `Transport::steering` is [`SteeringKind::BestEffortShard`].
    Shard {
        /// The wished shard.
        shard: u16,
        /// The node's number of shards.
        of: NonZeroU16,
    },
}

/// How well a transport can steer source ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SteeringKind {
    /// Not at all.
    None,
    /// Binds the port it is told.
    ExactPort,
    /// Tries to reach a shard in its own way.
    BestEffortShard,
}

/// Whether links of this transport are encrypted; decides which advertised port is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Security {
    /// Plain TCP or the like.
    Plain,
    /// TLS from the first byte.
    Tls,
}

/// Everything a transport needs to open one link.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Target {
    /// Where to.
    pub endpoint: Endpoint,
    /// The wish about the source port.
    pub steering: Steering,
    /// The name to verify under TLS; `None` where the endpoint's own address is meant.
    pub server_name: Option<Name>,
    /// When the attempt is given up. The driver drops the future then; a transport may use it to
    /// tell a silent host from a refusing one.
    pub deadline: Instant,
}

impl Target {
    /// A target without wishes.
    pub const fn new(endpoint: Endpoint, deadline: Instant) -> Self {
        Self {
            endpoint,
            steering: Steering::None,
            server_name: None,
            deadline,
        }
    }
}

/// The answer of a name look-up; at most [`RESOLVED_MAX`] addresses are used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "lives for one look-up, on the stack"
)]
#[non_exhaustive]
pub enum Resolved {
    /// Addresses; the driver joins the port.
    Addrs(heapless::Vec<IpAddr, RESOLVED_MAX>),
    /// Leave the name as it is: something behind the transport resolves it.
    KeepName,
}

/// Most addresses of one name that are tried.
pub const RESOLVED_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv6Addr, SocketAddrV6};
    use std::string::ToString;

    #[test]
    fn an_address_is_written_as_the_library_writes_it() {
        let check = |addr: SocketAddr| {
            assert_eq!(Endpoint::Addr(addr).to_string(), addr.to_string());
        };
        for text in [
            "0.0.0.0:0",
            "255.1.10.9:65535",
            "[::ffff:10.0.0.1]:9042",
            "[::ffff:0:0]:1",
        ] {
            check(text.parse().unwrap());
        }
        // Every choice of groups that are zero.
        for zeros in 0..=255_u32 {
            let group = |at: u32| {
                if zeros >> at & 1 == 1 {
                    0
                } else {
                    0x0db8 + at as u16
                }
            };
            let [a, b, c, d, e, f, g, h] = [0, 1, 2, 3, 4, 5, 6, 7].map(group);
            let ip = Ipv6Addr::new(a, b, c, d, e, f, g, h);
            for scope in [0, 7] {
                check(SocketAddrV6::new(ip, 9042, 0, scope).into());
            }
        }
    }
}
