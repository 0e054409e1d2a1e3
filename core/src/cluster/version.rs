//! The protocol version that is asked in, for the whole cluster.
//!
//! Nodes may offer a newer one. If one of them refuses what it offers, no offer is taken up any more.
//!
//! It steps down when a contact point refuses it, each version once, and what was found counts for
//! all later connections. Only a node's own words count: one that closes without a word is not
//! reached.

use alloc::format;
use alloc::string::String;

use crate::config::ProtocolVersions;
use crate::error::{Error, ErrorKind, PeerIncompatible};
use crate::wire::ProtocolVersion;

/// The version asked in, and those that may follow.
#[derive(Debug)]
pub(super) struct AskedVersion {
    versions: ProtocolVersions,
    current: ProtocolVersion,
    /// Whether a node may be spoken with in a newer one that it offers.
    may_rise: bool,
}

impl AskedVersion {
    pub(super) const fn new(versions: ProtocolVersions) -> Self {
        let current = versions.first();
        Self {
            versions,
            current,
            may_rise: true,
        }
    }

    pub(super) const fn may_rise(&self) -> bool {
        self.may_rise
    }

    pub(super) const fn current(&self) -> ProtocolVersion {
        self.current
    }

    /// An attempt in this version failed. `Ok` if it is to be made anew, in the version that is
    /// current then; else why it failed.
    pub(super) fn handle_failed(
        &mut self,
        asked: ProtocolVersion,
        error: Error,
    ) -> Result<(), Error> {
        if self.note_offered(&error) {
            return Ok(());
        }
        if error.kind() != ErrorKind::PeerIncompatible(PeerIncompatible::ProtocolVersion) {
            return Err(error);
        }
        if asked > self.current {
            // Another attempt has found that already.
            return Ok(());
        }
        match self.versions.after(asked) {
            Some(lower) => self.current = lower,
            None if asked == self.versions.first() => return Err(error),
            None => return Err(self.no_common_version(&error)),
        }
        Ok(())
    }

    /// Whether an attempt failed because a version was refused that had been offered. None is taken up
    /// from then on.
    pub(super) fn note_offered(&mut self, error: &Error) -> bool {
        #[cfg(any(test, feature = "protocol-v5"))]
        if error.kind() == ErrorKind::PeerIncompatible(PeerIncompatible::OfferedVersion) {
            self.may_rise = false;
            return true;
        }
        let _ = error;
        false
    }

    fn no_common_version(&self, error: &Error) -> Error {
        let mut tried = String::new();
        let mut version = Some(self.versions.first());
        while let Some(known) = version {
            let comma = if tried.is_empty() { "" } else { ", " };
            tried.push_str(&format!("{comma}{}", known.number()));
            version = self.versions.after(known);
        }
        let last = error.own_text().unwrap_or_default();
        Error::with_text(error.kind(), format!("tried {tried}; {last}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::LinkError;
    use ProtocolVersion::{V3, V4, V5};

    fn refusal() -> Error {
        let kind = ErrorKind::PeerIncompatible(PeerIncompatible::ProtocolVersion);
        Error::with_text(kind, "no")
    }

    #[test]
    fn each_version_is_tried_once() {
        let mut version = AskedVersion::new(ProtocolVersions::between(V3, V5));
        for (asked, current) in [(V5, V4), (V5, V4), (V4, V3), (V5, V3), (V4, V3)] {
            version.handle_failed(asked, refusal()).unwrap();
            assert_eq!(version.current(), current);
        }
        let error = version.handle_failed(V3, refusal()).unwrap_err();
        assert_eq!(error.kind(), refusal().kind());
        assert!(error.text().ends_with("tried 5, 4, 3; no"), "{error}");
        assert_eq!(version.current(), V3);
    }

    #[test]
    fn a_version_that_was_set_is_not_left() {
        for versions in [
            ProtocolVersions::only(V5),
            ProtocolVersions::AUTOMATIC,
            V3.into(),
        ] {
            let mut version = AskedVersion::new(versions);
            let error = version.handle_failed(versions.first(), refusal());
            assert_eq!(error.unwrap_err(), refusal());
            assert_eq!(version.current(), versions.first());
        }
    }

    #[test]
    fn other_errors_say_nothing_of_the_version() {
        let mut version = AskedVersion::new(ProtocolVersions::between(V4, V5));
        let silent = Error::from(LinkError::CLOSED_BY_PEER);
        let error = version.handle_failed(V5, silent.clone());
        assert_eq!((error, version.current()), (Err(silent), V5));
    }
}
