//! Errors, sorted by who is at fault.

use core::fmt;

/// Why a link could not be opened or broke.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkError {
    kind: LinkErrorKind,
    os_code: i32,
}

/// The causes a transport can tell apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum LinkErrorKind {
    /// The name has no address.
    Resolve,
    /// Nothing listens there.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// No way to that host or network.
    Unreachable,
    /// No answer in time.
    TimedOut,
    /// TLS failed: certificate, name, or protocol.
    Tls,
    /// The wished source port is taken.
    PortInUse,
    /// The peer closed the connection.
    ClosedByPeer,
    /// We closed it: the session ends or the connection was given up.
    ClosedByUs,
    /// The platform said something else.
    Other,
}

impl LinkError {
    /// The wished source port is taken.
    pub const PORT_IN_USE: Self = Self::new(LinkErrorKind::PortInUse);
    /// The peer closed the connection.
    pub const CLOSED_BY_PEER: Self = Self::new(LinkErrorKind::ClosedByPeer);
    /// No answer in time.
    pub const TIMED_OUT: Self = Self::new(LinkErrorKind::TimedOut);

    /// An error of this kind.
    pub const fn new(kind: LinkErrorKind) -> Self {
        Self { kind, os_code: 0 }
    }

    /// The same with the platform's own error number.
    pub const fn with_os_code(kind: LinkErrorKind, os_code: i32) -> Self {
        Self { kind, os_code }
    }

    /// The kind.
    pub const fn kind(self) -> LinkErrorKind {
        self.kind
    }

    /// The platform's own error number, if it gave one.
    pub const fn os_code(self) -> Option<i32> {
        if self.os_code == 0 {
            None
        } else {
            Some(self.os_code)
        }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            LinkErrorKind::Resolve => "name has no address",
            LinkErrorKind::Refused => "connection refused",
            LinkErrorKind::Reset => "connection reset by peer",
            LinkErrorKind::Unreachable => "host unreachable",
            LinkErrorKind::TimedOut => "no answer in time",
            LinkErrorKind::Tls => "TLS failed",
            LinkErrorKind::PortInUse => "source port in use",
            LinkErrorKind::ClosedByPeer => "closed by peer",
            LinkErrorKind::ClosedByUs => "closed by this side",
            LinkErrorKind::Other => "link failed",
        })?;
        match self.os_code() {
            Some(code) => write!(f, " (os error {code})"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for LinkError {}
