//! The nodes of the cluster, by number, and how far each is.
//!
//! Names of data centres and racks are kept once; distances are found when a row is read, since the
//! policy does not change. A row says little more than who and where; whether a node lives is told
//! by events and links.

use super::{Plane, Vec};
use alloc::boxed::Box;
use core::net::IpAddr;
use uuid::Uuid;

use crate::routing::{Policy, ShardMap};
use crate::time::Instant;
use crate::words::{append, boxed};

/// A node.
#[derive(Clone, Debug, Default)]
pub struct Member {
    host_id: Uuid,
    address: Address,
    broadcast: Address,
    dc: u16,
    rack: u16,
    sharding: Option<ShardMap>,
    pub(super) distance: Distance,
    is_present: bool,
    pub(super) is_up: bool,
    pub(super) has_tokens: bool,
    /// The reading under way has come by it.
    is_seen: bool,
    /// For the owner, who has the links.
    pub(in crate::compact) trouble: Trouble,
}

/// What goes wrong with links to a node.
#[derive(Clone, Debug, Default)]
pub(in crate::compact) struct Trouble {
    /// None is opened before that.
    pub(in crate::compact) until: Instant,
    pub(in crate::compact) failures: u8,
    /// Those that did not reach the wished shard.
    pub(in crate::compact) misses: u16,
    /// The port for wishes did not answer.
    pub(in crate::compact) has_no_port: bool,
}

/// How far a node is, nearest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Distance {
    Rack,
    Dc,
    #[default]
    Remote,
}

impl Distance {
    fn new(policy: &Policy, dc: &str, rack: &str) -> Self {
        match (&policy.preferred_dc, &policy.preferred_rack) {
            (None, _) => Self::Dc,
            (Some(local), _) if **local != *dc => Self::Remote,
            (_, Some(near)) if **near == *rack => Self::Rack,
            _ => Self::Dc,
        }
    }
}

/// A node as a row of a system table, or an earlier session, tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built field by field")]
pub struct MemberRow<'a> {
    /// Its identity.
    pub host_id: Uuid,
    /// Where clients reach it, under the port of the contact point.
    pub address: Option<IpAddr>,
    /// The address that events name.
    pub broadcast: Option<IpAddr>,
    /// Its data centre.
    pub dc: &'a str,
    /// Its rack.
    pub rack: &'a str,
    /// Whether it owns data, as far as that is known.
    pub has_tokens: bool,
}

/// An address in sixteen bytes, those of the old kind mapped; all zero for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address([u8; 16]);

impl Address {
    pub(super) const NONE: Self = Self([0; 16]);

    /// From the bytes of the protocol. Those that stand for all interfaces are none.
    #[inline(never)]
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut address = Self::NONE;
        let start = address.0.len().wrapping_sub(bytes.len());
        let is_of_size = matches!(bytes.len(), 4 | 16);
        if is_of_size && bytes.iter().any(|byte| *byte != 0) {
            for (place, byte) in address.0.iter_mut().skip(start).zip(bytes) {
                *place = *byte;
            }
            if let ([.., upper, lower, _, _, _, _], 4) = (&mut address.0, bytes.len()) {
                (*upper, *lower) = (0xff, 0xff);
            }
        }
        address
    }

    fn of(address: Option<IpAddr>) -> Self {
        match address {
            Some(IpAddr::V4(address)) => Self::new(&address.octets()),
            Some(IpAddr::V6(address)) => Self::new(&address.octets()),
            None => Self::NONE,
        }
    }

    fn ip(self) -> Option<IpAddr> {
        let (prefix, rest) = self.0.split_at(12);
        match rest {
            _ if self == Self::NONE => None,
            &[a, b, c, d] if prefix == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff] => {
                Some(IpAddr::from([a, b, c, d]))
            }
            _ => Some(IpAddr::from(self.0)),
        }
    }
}

/// A row as it is read.
pub(super) struct Row<'a> {
    pub(super) host_id: Uuid,
    pub(super) address: Address,
    pub(super) broadcast: Address,
    pub(super) dc: &'a str,
    pub(super) rack: &'a str,
    pub(super) has_tokens: bool,
}

impl Member {
    /// Its identity.
    pub const fn host_id(&self) -> Uuid {
        self.host_id
    }

    /// Where clients reach it, under the port of the contact point. `None` if its own row did not
    /// say.
    pub fn address(&self) -> Option<IpAddr> {
        self.address.ip()
    }

    /// The address that events name.
    pub fn broadcast(&self) -> Option<IpAddr> {
        self.broadcast.ip()
    }

    pub(super) fn has_address(&self, address: Address) -> bool {
        self.address == address || self.broadcast == address
    }

    /// How it divides tokens over shards, once a link has told.
    pub const fn sharding(&self) -> Option<ShardMap> {
        self.sharding
    }

    /// Whether it belongs to the cluster. The others are places that are free, or will be.
    pub const fn is_present(&self) -> bool {
        self.is_present
    }

    /// Whether it is believed to be up.
    pub const fn is_up(&self) -> bool {
        self.is_up
    }

    /// Whether it is in the preferred data centre, if one is named.
    pub const fn is_local(&self) -> bool {
        !matches!(self.distance, Distance::Remote)
    }

    /// Whether links may be opened to it.
    pub(in crate::compact) fn is_within_reach(&self, remote_allowed: bool) -> bool {
        self.reach(remote_allowed, false).is_some()
    }

    /// Its distance, if requests may go there. Who has a link to it knows that it is up.
    pub(super) fn reach(&self, remote_allowed: bool, is_linked: bool) -> Option<Distance> {
        let is_usable = self.is_present && (self.is_up || is_linked);
        (is_usable && (remote_allowed || self.is_local())).then_some(self.distance)
    }

    /// Data centre and rack as numbers of [`Plane::name`].
    pub const fn place(&self) -> (u16, u16) {
        (self.dc, self.rack)
    }
}

/// All nodes.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    pub(super) members: Vec<Member>,
    /// Of data centres and racks.
    names: Vec<Box<str>>,
    pub(super) left_out: u32,
}

impl Cluster {
    #[inline(never)]
    pub(super) fn get(&self, member: u16) -> Option<&Member> {
        self.members
            .get(usize::from(member))
            .filter(|member| member.is_present)
    }

    /// The number of a host that is present.
    pub(super) fn by_host_id(&self, host_id: Uuid) -> Option<u16> {
        let is_it = |member: &Member| member.is_present && member.host_id == host_id;
        u16::try_from(self.members.iter().position(is_it)?).ok()
    }

    /// The number of a name, which is kept if it is new. Names that are too many or too long are
    /// all the same one.
    #[inline(never)]
    pub(super) fn intern(&mut self, name: &str, members_max: usize) -> u16 {
        let known = self.names.iter().position(|known| **known == *name);
        let place = known.unwrap_or(self.names.len());
        if known.is_none() {
            if place >= members_max.saturating_mul(2) || name.len() > NAME_LEN_MAX {
                return u16::MAX;
            }
            self.names.push(boxed(name));
        }
        u16::try_from(place).unwrap_or(u16::MAX)
    }

    /// A reading begins: nobody was seen yet.
    pub(super) fn begin(&mut self) {
        self.left_out = 0;
        for member in &mut self.members {
            member.is_seen = false;
        }
    }

    /// A reading has ended: who was not seen is gone. Whether it should be read again, since a
    /// place has become free that somebody lacked.
    pub(super) fn end(&mut self) -> bool {
        let mut is_free = false;
        for member in &mut self.members {
            is_free |= member.is_present && !member.is_seen;
            member.is_present = member.is_seen;
        }
        is_free && self.left_out > 0
    }
}

impl Plane {
    /// The places of members, free ones among them. A member's number is its place.
    pub fn members(&self) -> &[Member] {
        &self.cluster.members
    }

    /// All numbers of members are below this one.
    pub(in crate::compact) fn members_end(&self) -> u16 {
        u16::try_from(self.cluster.members.len()).unwrap_or(u16::MAX)
    }

    /// The member of this number, if it is present.
    pub fn member(&self, member: u16) -> Option<&Member> {
        self.cluster.get(member)
    }

    pub(in crate::compact) fn member_mut(&mut self, member: u16) -> Option<&mut Member> {
        self.cluster.members.get_mut(usize::from(member))
    }

    /// What went wrong may have been for want of a network: all is tried again.
    pub(in crate::compact) fn forgive(&mut self) {
        for member in &mut self.cluster.members {
            (member.trouble.misses, member.trouble.has_no_port) = (0, false);
        }
    }

    /// The number of a host that is present.
    pub fn member_by_host_id(&self, host_id: Uuid) -> Option<u16> {
        self.cluster.by_host_id(host_id)
    }

    /// The name of a data centre or rack by [`Member::place`]; empty where they are not kept: that is
    /// done for features `compact-ring` and `warm-start`.
    pub fn name(&self, number: u16) -> &str {
        self.cluster
            .names
            .get(usize::from(number))
            .map_or("", |name| name)
    }

    /// Takes a node as it was saved; gives its number, or counts it as left out.
    pub fn put_member(&mut self, row: &MemberRow<'_>) -> Option<u16> {
        self.put_row(&Row {
            host_id: row.host_id,
            address: Address::of(row.address),
            broadcast: Address::of(row.broadcast),
            dc: row.dc,
            rack: row.rack,
            has_tokens: row.has_tokens,
        })
    }

    /// Takes a node as a row tells of it. Of several rows with one host id in the same reading the
    /// one with the lowest address counts.
    pub(super) fn put_row(&mut self, row: &Row<'_>) -> Option<u16> {
        let members_max = usize::from(self.limits.members).min(MEMBERS_MAX);
        let cluster = &mut self.cluster;
        let (mut known, mut free) = (None, None);
        for (place, member) in cluster.members.iter().enumerate() {
            if member.host_id == row.host_id {
                known = Some(place);
                break;
            }
            if !member.is_present {
                free = free.or(Some(place));
            }
        }
        let place = known.or(free).unwrap_or(cluster.members.len());
        let number = u16::try_from(place).ok().filter(|_| place < members_max);
        let Some(number) = number else {
            cluster.left_out = cluster.left_out.saturating_add(1);
            return None;
        };
        let [dc, rack] = [row.dc, row.rack].map(|name| match HAS_NAMES {
            true => cluster.intern(name, members_max),
            false => u16::MAX,
        });
        if known.is_none() {
            let new = Member {
                is_up: true,
                ..Member::default()
            };
            match cluster.members.get_mut(place) {
                Some(member) => *member = new,
                None => append(&mut cluster.members, new),
            }
        }
        let member = cluster.members.get_mut(place)?;
        if member.is_seen && member.address <= row.address {
            return Some(number);
        }
        member.host_id = row.host_id;
        member.address = row.address;
        member.broadcast = row.broadcast;
        (member.dc, member.rack) = (dc, rack);
        member.distance = Distance::new(&self.policy, row.dc, row.rack);
        member.has_tokens = row.has_tokens;
        member.is_present = true;
        member.is_seen = true;
        Some(number)
    }

    /// Notes whether a node is believed to be up.
    pub fn set_up(&mut self, member: u16, is_up: bool) {
        self.change(member, |member| member.is_up = is_up);
    }

    /// Notes what a link told about the shards of a node.
    pub fn set_sharding(&mut self, member: u16, sharding: Option<ShardMap>) {
        self.change(member, |member| member.sharding = sharding);
    }

    fn change(&mut self, member: u16, change: impl FnOnce(&mut Member)) {
        if let Some(member) = self.member_mut(member) {
            change(member);
        }
    }
}

/// Numbers above stand for hosts that are not known yet.
const MEMBERS_MAX: usize = 0x7fff;

/// Whether names of data centres and racks are kept.
const HAS_NAMES: bool = cfg!(any(test, feature = "compact-ring", feature = "warm-start"));

/// A name that is longer is not kept.
const NAME_LEN_MAX: usize = 255;
