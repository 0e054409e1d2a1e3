//! Blocks of addresses that no name may lead to unless the operator named them: everything that is
//! not plainly somebody's public address. From IANA's registries of special-purpose addresses for
//! IPv4 and IPv6, and the metadata services of clouds that have public ones.

use core::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// A block and what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) net: IpNet,
    pub(crate) what: &'static str,
}

/// The smallest special block that holds the address; none if it is public.
pub(crate) fn special(address: IpAddr) -> Option<Block> {
    let blocks: &mut dyn Iterator<Item = Block> = match address {
        IpAddr::V4(_) => &mut V4.iter().filter_map(|(octets, len, what)| {
            let net = Ipv4Net::new((*octets).into(), *len).ok()?.into();
            Some(Block { net, what })
        }),
        IpAddr::V6(_) => &mut V6.iter().filter_map(|(segments, len, what)| {
            let net = Ipv6Net::new((*segments).into(), *len).ok()?.into();
            Some(Block { net, what })
        }),
    };
    blocks
        .filter(|block| block.net.contains(&address))
        .max_by_key(|block| block.net.prefix_len())
}

const V4: [([u8; 4], u8, &str); 17] = [
    ([0, 0, 0, 0], 8, "unspecified"),
    ([10, 0, 0, 0], 8, "private"),
    ([100, 64, 0, 0], 10, "shared by a carrier"),
    ([127, 0, 0, 0], 8, "loopback"),
    ([168, 63, 129, 16], 32, "metadata"),
    ([169, 254, 0, 0], 16, "link-local"),
    ([172, 16, 0, 0], 12, "private"),
    ([192, 0, 0, 0], 24, "reserved"),
    ([192, 0, 2, 0], 24, "documentation"),
    ([192, 31, 196, 0], 24, "reserved"),
    ([192, 88, 99, 0], 24, "IPv6 relay"),
    ([192, 168, 0, 0], 16, "private"),
    ([198, 18, 0, 0], 15, "benchmarking"),
    ([198, 51, 100, 0], 24, "documentation"),
    ([203, 0, 113, 0], 24, "documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    ([240, 0, 0, 0], 4, "reserved"),
];

/// Only 2000::/3 is given to the public; what lies around it is special too.
const V6: [([u16; 8], u8, &str); 23] = [
    ([0, 0, 0, 0, 0, 0, 0, 0], 3, "reserved"),
    ([0x4000, 0, 0, 0, 0, 0, 0, 0], 2, "reserved"),
    ([0x8000, 0, 0, 0, 0, 0, 0, 0], 1, "reserved"),
    ([0, 0, 0, 0, 0, 0, 0, 0], 128, "unspecified"),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, "loopback"),
    ([0, 0, 0, 0, 0, 0, 0, 0], 96, "IPv4 in IPv6"),
    ([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, "IPv4 in IPv6"),
    ([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, "IPv4 in IPv6"),
    ([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, "NAT64"),
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "NAT64"),
    ([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "discarded"),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "reserved"),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, "IPv4 in IPv6"),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation"),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "IPv4 in IPv6"),
    ([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48, "reserved"),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation"),
    ([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, "segment routing"),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "private"),
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0], 32, "metadata"),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "link-local"),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "private"),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "multicast"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_block_without_host_bits() {
        for (octets, len, _) in V4 {
            let net = Ipv4Net::new(octets.into(), len).unwrap();
            assert_eq!(net, net.trunc());
        }
        for (segments, len, _) in V6 {
            let net = Ipv6Net::new(segments.into(), len).unwrap();
            assert_eq!(net, net.trunc());
        }
    }

    #[test]
    fn addresses_are_told_apart() {
        for (address, what) in [
            ("8.8.8.8", None),
            ("172.15.255.255", None),
            ("172.16.0.0", Some("private")),
            ("172.32.0.0", None),
            ("100.63.255.255", None),
            ("100.100.100.200", Some("shared by a carrier")),
            ("169.254.169.254", Some("link-local")),
            ("168.63.129.16", Some("metadata")),
            ("255.255.255.255", Some("reserved")),
            ("2606:4700::1", None),
            ("::1", Some("loopback")),
            ("::", Some("unspecified")),
            ("::ffff:127.0.0.1", Some("IPv4 in IPv6")),
            ("::127.0.0.1", Some("IPv4 in IPv6")),
            ("64:ff9b::7f00:1", Some("NAT64")),
            ("2002:7f00:1::", Some("IPv4 in IPv6")),
            ("fd00:ec2::254", Some("metadata")),
            ("fd12::1", Some("private")),
            ("fe80::1", Some("link-local")),
            ("ff02::1", Some("multicast")),
            ("4000::1", Some("reserved")),
        ] {
            let found = special(address.parse().unwrap()).map(|block| block.what);
            assert_eq!(found, what, "{address}");
        }
    }
}
