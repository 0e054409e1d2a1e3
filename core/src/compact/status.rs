//! What is known of a session, copied for whoever asks.

use alloc::vec::Vec;
use core::net::IpAddr;

use uuid::Uuid;

use super::hub::State;
use super::plane::PlaneCounters;
use crate::target::Endpoint;

/// How it stands with a session.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Status {
    /// Whether requests are taken.
    pub is_open: bool,
    /// Connections, those that are being opened included.
    pub connections: Vec<ConnectionStatus>,
    /// Nodes of the cluster; none with `Routing::Single`.
    pub members: Vec<MemberStatus>,
    /// What is held of tablets, and how often requests were sent without knowing where to.
    pub counters: PlaneCounters,
    /// Where nodes are that replies and errors name by their numbers.
    pub nodes: Vec<(u16, Endpoint)>,
}

/// How it stands with a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionStatus {
    /// Where it leads.
    pub place: Endpoint,
    /// The shard at its other end, where the node shards.
    pub shard: Option<u16>,
    /// Whether it takes requests.
    pub serves: bool,
    /// Requests on it.
    pub in_use: u16,
    /// Those of them that were given up.
    pub orphans: u16,
}

/// A node of the cluster.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemberStatus {
    /// Its identity.
    pub host_id: Uuid,
    /// Where clients reach it.
    pub address: Option<IpAddr>,
}

impl Status {
    pub(super) fn of(state: &State) -> Self {
        let connections = state.machine.links().map(|link| ConnectionStatus {
            place: link.place.clone(),
            shard: link.shard,
            serves: link.serves,
            in_use: link.in_use,
            orphans: link.orphans,
        });
        let plane = state.machine.plane();
        let present = plane.members().iter().filter(|member| member.is_present());
        let members = present.map(|member| MemberStatus {
            host_id: member.host_id(),
            address: member.address(),
        });
        Self {
            is_open: state.machine.is_open() && state.over.is_none(),
            connections: connections.collect(),
            members: members.collect(),
            counters: plane.counters(),
            nodes: state.machine.nodes().collect(),
        }
    }
}
