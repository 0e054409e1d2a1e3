//! Which versions of the protocol a session may speak.

use crate::wire::ProtocolVersion;

/// Which versions of the protocol a session may speak; [`AUTOMATIC`](Self::AUTOMATIC) unless set.
///
/// A session that was told a version speaks no other: `ProtocolVersion::V4.into()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolVersions {
    first: ProtocolVersion,
    oldest: ProtocolVersion,
    #[cfg(any(test, feature = "protocol-v5"))]
    is_automatic: bool,
}

impl ProtocolVersions {
    /// Version 4; where feature `protocol-v5` is on, 5 with each node that offers it and is no ScyllaDB
    /// node, unless a compression is wanted that version 5 does not know,
    /// or [`early_requests`](super::Config::early_requests).
    pub const AUTOMATIC: Self = Self {
        #[cfg(any(test, feature = "protocol-v5"))]
        is_automatic: true,
        ..Self::only(ProtocolVersion::V4)
    };

    /// This version and no other.
    pub const fn only(version: ProtocolVersion) -> Self {
        Self {
            first: version,
            oldest: version,
            #[cfg(any(test, feature = "protocol-v5"))]
            is_automatic: false,
        }
    }

    /// The newest of these that the first node to answer speaks, for the whole cluster: the newest is
    /// tried first, then the next lower one whenever the version is refused.
    pub const fn between(oldest: ProtocolVersion, newest: ProtocolVersion) -> Self {
        Self {
            oldest,
            ..Self::only(newest)
        }
    }

    /// The version that is asked in first.
    pub const fn first(self) -> ProtocolVersion {
        self.first
    }

    /// The version to ask in when this one was refused.
    pub(crate) fn after(self, refused: ProtocolVersion) -> Option<ProtocolVersion> {
        refused.lower().filter(|lower| *lower >= self.oldest)
    }

    /// Whether version 5 may be spoken with a node that offers it.
    #[cfg(any(test, feature = "protocol-v5"))]
    pub(crate) const fn may_rise(self) -> bool {
        self.is_automatic
    }
}

impl From<ProtocolVersion> for ProtocolVersions {
    fn from(version: ProtocolVersion) -> Self {
        Self::only(version)
    }
}
