//! Which nodes a session may use at all, by the user's own word.
//!
//! Not a preference: a node that is refused is known, but never connected to and in no plan.

use core::net::SocketAddr;

use uuid::Uuid;

/// A node as a [`HostFilter`] sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Host<'a> {
    /// Its identity.
    pub host_id: Uuid,
    /// Where clients reach it.
    pub address: SocketAddr,
    /// Its data centre.
    pub dc: &'a str,
    /// Its rack.
    pub rack: &'a str,
}

/// Decides which nodes may be used. Any `Fn(&Host) -> bool` is one.
///
/// It is asked anew each time the topology is read, by the control plane: it must be quick, and
/// may change its mind. A contact point that it refuses can still be what the cluster is found
/// through; that connection then reads system tables and takes no request.
pub trait HostFilter: Send + Sync {
    /// Whether the node may be used.
    fn accepts(&self, host: &Host<'_>) -> bool;
}

impl<F: Fn(&Host<'_>) -> bool + Send + Sync> HostFilter for F {
    fn accepts(&self, host: &Host<'_>) -> bool {
        self(host)
    }
}
