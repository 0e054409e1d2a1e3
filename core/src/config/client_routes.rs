//! Which client routes a session follows: settings alone, the mechanism is `cluster`'s.

use alloc::string::String;
use alloc::vec::Vec;

use super::{ConfigProblem, Error, ErrorKind};

/// Client routes: the nodes are reached by the addresses and ports that the cluster's table
/// `system.client_routes` has for these connection ids, as behind a private link.
///
/// Contact points are reached as they are given: they name the way in. Every other connection goes
/// by the route of its node, to an address or to a name that is looked up at each attempt, and
/// changes are followed while the session runs. A node without a route is not connected to; its own
/// address may be somebody else's out here. Who answers is told by the host id that ScyllaDB names
/// in the handshake, so all nodes may stand behind one name.
///
/// Under TLS a route's `tls_port` counts, without its `port`. A certificate is verified for
/// [`Config::server_name`](super::Config::server_name), or without one for the name or address in
/// the route. Certificates of nodes seldom have that of a proxy, so set a name that all of them
/// have; verification is never weakened because of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientRoutes {
    /// Whose routes to follow. If several lead to one node, the first here that can be used counts.
    pub connection_ids: Vec<String>,
    /// Whether the nodes' shard-aware port is used at the address of the route. Off unless set:
    /// proxies choose source ports themselves, and seldom serve that port.
    pub shard_aware_port: bool,
}

impl ClientRoutes {
    /// Follows the routes of these connection ids.
    pub fn new<I: Into<String>>(connection_ids: impl IntoIterator<Item = I>) -> Self {
        Self {
            connection_ids: connection_ids.into_iter().map(Into::into).collect(),
            shard_aware_port: false,
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let is_sound = |id: &String| (1..=ID_LEN_MAX).contains(&id.len());
        if (1..=IDS_MAX).contains(&self.connection_ids.len())
            && self.connection_ids.iter().all(is_sound)
        {
            return Ok(());
        }
        let kind = ErrorKind::Config(ConfigProblem::OutOfRange);
        let text = "client routes want 1 to 100 connection ids of 1 to 1024 bytes";
        Err(Error::with_text(kind, text))
    }
}

/// As many partition keys as ScyllaDB takes in one IN by default.
const IDS_MAX: usize = 100;
const ID_LEN_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_ids_are_bounded_in_number_and_length() {
        let long = "é".repeat(ID_LEN_MAX / 2);
        let too_long = "é".repeat(ID_LEN_MAX / 2 + 1);
        let many: Vec<&str> = core::iter::repeat_n("id", IDS_MAX + 1).collect();
        for (ids, is_sound) in [
            (&[][..], false),
            (&["c1"], true),
            (&["c1", ""], false),
            (&["c1", &long], true),
            (&[too_long.as_str()], false),
            (&many[1..], true),
            (&many[..], false),
        ] {
            assert_eq!(
                ClientRoutes::new(ids.iter().copied()).check().is_ok(),
                is_sound
            );
        }
    }
}
