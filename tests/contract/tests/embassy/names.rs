//! Look-ups by the name server of the far stack: names with several addresses, without any, and
//! without an answer.

use embassy_futures::select::{Either, select};
use embassy_net::udp::{PacketMetadata, UdpSocket};

use super::*;

/// Answers queries for IPv4 addresses. Names that begin with `silent` get no answer.
pub(crate) async fn name_server(rig: Rig, addresses: &[(&str, &[Ipv4Address])]) {
    let meta = || leak([PacketMetadata::EMPTY; 4]);
    let buffer = || leak([0; 1024]);
    let mut socket = UdpSocket::new(rig.far, meta(), buffer(), meta(), buffer());
    socket.bind(53).unwrap();
    let mut packet = [0; 512];
    loop {
        let (len, from) = socket.recv_from(&mut packet).await.unwrap();
        let query = &packet[..len];
        let (name, question_end) = question(query);
        if name.starts_with("silent") {
            continue;
        }
        let found = addresses.iter().find(|(known, _)| *known == name);
        let found = found.map_or(&[][..], |(_, addresses)| addresses);
        // RFC 1035, section 4: the header with our bits and counts, the question, the answers.
        let mut answer = query[..question_end].to_vec();
        let no_such_name = if found.is_empty() { 3 } else { 0 };
        answer[2..4].copy_from_slice(&[0x81, 0x80 | no_such_name]);
        answer[4..12].copy_from_slice(&[0, 1, 0, found.len() as u8, 0, 0, 0, 0]);
        for address in found {
            // The name of the question, A, IN, a minute, four bytes.
            answer.extend([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
            answer.extend(address.octets());
        }
        socket.send_to(&answer, from).await.unwrap();
    }
}

/// The name that is asked for, and where its question ends.
fn question(query: &[u8]) -> (String, usize) {
    let (mut labels, mut at) = (Vec::new(), 12);
    while query[at] > 0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(String::from_utf8_lossy(&query[at + 1..end]).into_owned());
        at = end;
    }
    (labels.join("."), at + 5)
}

#[test]
fn names_are_looked_up_and_each_failure_has_its_error() {
    on_cable(async |rig| {
        let mut options = Options::default();
        options.resolve_timeout = Duration::from_secs(1);
        let (transport, pool) = transport(rig.near, options);
        let served = name_server(rig, &[("node.test", &[FAR, NOBODY])]);
        let test = async {
            // How many of several addresses are kept is fixed when smoltcp is built; the first is.
            let found = transport.resolve(&Name::from("node.test")).await.unwrap();
            let Resolved::Addrs(addrs) = found else {
                panic!("{found:?}")
            };
            assert_eq!(addrs.first(), Some(&IpAddr::V4(FAR)));

            let begin = transport.clock().now();
            let missing = transport.resolve(&Name::from("missing.test")).await;
            assert_eq!(missing.unwrap_err().kind(), LinkErrorKind::Resolve);
            assert!(elapsed(begin, &transport) < Duration::from_millis(800));
            let silent = transport.resolve(&Name::from("silent.test")).await;
            assert_eq!(silent.unwrap_err(), LinkError::TIMED_OUT);
            assert!(elapsed(begin, &transport) < Duration::from_secs(3));

            let to = |host: &str, within: u64| {
                let host = Name::from(host);
                let within = Duration::from_millis(within);
                let deadline = transport.clock().now().saturating_add(within);
                let endpoint = Endpoint::Name { host, port: PORT };
                transport.connect(Target::new(endpoint, deadline))
            };
            let mut far = far_socket(rig);
            let (link, accepted) = join(to("node.test", 5_000), far.accept(PORT)).await;
            accepted.unwrap();
            drop(link.unwrap());
            let missing = to("missing.test", 5_000).await;
            assert_eq!(missing.unwrap_err().kind(), LinkErrorKind::Resolve);
            let begin = transport.clock().now();
            let silent = to("silent.test", 100).await;
            assert_eq!(silent.unwrap_err(), LinkError::TIMED_OUT);
            // The connect's own deadline is sooner than that of look-ups.
            assert!(elapsed(begin, &transport) < Duration::from_millis(800));
            assert_eq!(pool.free(), 2);

            rig.near.set_config_v4(ConfigV4::None);
            let nameless = transport.resolve(&Name::from("node.test")).await;
            assert_eq!(nameless.unwrap_err(), NO_ADDRESS);
        };
        match select(served, test).await {
            Either::First(()) => unreachable!("serves for ever"),
            Either::Second(()) => {}
        }
    });
}
