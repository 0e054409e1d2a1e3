//! What is read from SUPPORTED, and what STARTUP makes of it.

use std::collections::{BTreeMap, BTreeSet};

use messina_conformance::golden::by_name;
use messina_core::Shared;
use messina_core::conn::extensions::{Agreed, Offer, Sharding, TabletsRouting};
use messina_core::conn::negotiate::{HandshakeConfig, Step};
use messina_core::routing::{ShardIdx, ShardMap};
use messina_core::wire::Reader;
use messina_core::wire::response::Supported;

use crate::handshake::{Talk, config};

const LWT: &str = "SCYLLA_LWT_ADD_METADATA_MARK";
const RATE: &str = "SCYLLA_RATE_LIMIT_ERROR";
const METADATA_ID: &str = "SCYLLA_USE_METADATA_ID";
const V1: &str = "TABLETS_ROUTING_V1";
const V2: &str = "TABLETS_ROUTING_V2_EXPERIMENTAL";
const LWT_VALUE: &str = "LWT_OPTIMIZATION_META_BIT_MASK=2147483648";
const RATE_VALUE: &str = "ERROR_CODE=61440";

/// A string multimap as the specification lays it out.
fn multimap(entries: &[(&str, &[&str])]) -> Vec<u8> {
    let mut bytes = short(entries.len()).to_vec();
    for (key, values) in entries {
        string(&mut bytes, key);
        bytes.extend(short(values.len()));
        values.iter().for_each(|value| string(&mut bytes, value));
    }
    bytes
}

fn short(len: usize) -> [u8; 2] {
    u16::try_from(len).unwrap().to_be_bytes()
}

fn string(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend(short(text.len()));
    bytes.extend(text.as_bytes());
}

fn offer_of(body: &[u8]) -> Offer {
    Offer::parse(&Supported::parse(&mut Reader::new(body)).unwrap())
}

fn offer(entries: &[(&str, &[&str])]) -> Offer {
    offer_of(&multimap(entries))
}

/// STARTUP after this SUPPORTED, and what was agreed in the end.
pub(crate) fn negotiate(
    config: HandshakeConfig,
    supported: &[u8],
) -> (BTreeMap<String, String>, Agreed) {
    let mut talk = Talk::begin(config);
    let mut frame = vec![0x84, 0, 0, 0, 6];
    frame.extend(u32::try_from(supported.len()).unwrap().to_be_bytes());
    frame.extend(supported);
    let text: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(talk.go_on(&text), 1, "STARTUP");
    let startup = string_map(&talk.sent()[9..]);
    let ready = [0x84, 0, 0, 1, 2, 0, 0, 0, 0];
    match talk.hear(&ready).unwrap() {
        Step::Ready(agreed) => (startup, agreed),
        step => panic!("{step:?}"),
    }
}

fn string_map(mut bytes: &[u8]) -> BTreeMap<String, String> {
    let count = take_short(&mut bytes);
    let mut map = BTreeMap::new();
    for _ in 0..count {
        let key = take_string(&mut bytes);
        let earlier = map.insert(key, take_string(&mut bytes));
        assert_eq!(earlier, None, "a key twice");
    }
    assert!(bytes.is_empty());
    map
}

fn take_short(bytes: &mut &[u8]) -> usize {
    let number = bytes.split_off(..2).unwrap();
    usize::from(u16::from_be_bytes(number.try_into().unwrap()))
}

fn take_string(bytes: &mut &[u8]) -> String {
    let len = take_short(bytes);
    let text = bytes.split_off(..len).unwrap();
    String::from_utf8(text.to_vec()).unwrap()
}

/// A key without parameter comes with one empty string; one without any must not hurt either.
#[test]
fn keys_without_values_count_by_their_presence() {
    for values in [&[""][..], &[], &["anything"], &["", ""]] {
        let found = offer(&[
            ("CLIENT_OPTIONS", values),
            (METADATA_ID, values),
            (V1, values),
            (V2, values),
        ]);
        assert!(found.client_options && found.metadata_id);
        assert!(found.tablets_v1 && found.tablets_v2);
    }
    // Keys whose value counts are not there without one.
    for values in [&[""][..], &[]] {
        let names = [LWT, RATE, "SCYLLA_HOST_ID", "SCYLLA_SHARD_AWARE_PORT"];
        let found = offer(&names.map(|name| (name, values)));
        assert_eq!((found.lwt_mask, found.rate_limit_error), (None, None));
        assert_eq!((found.host_id, found.ports.plain), (None, None));
        assert!(found.is_scylla);
        let found = offer(&[("SCYLLA_SHARD", values), ("SCYLLA_NR_SHARDS", values)]);
        assert_eq!(found.sharding, None);
    }
}

/// Two values are `NAME=NUMBER`, all others bare.
#[test]
fn two_values_have_a_name_and_all_others_none() {
    for (key, value, expected) in [
        (LWT, LWT_VALUE, (Some(0x8000_0000), None)),
        (LWT, "LWT_OPTIMIZATION_META_BIT_MASK=16", (Some(16), None)),
        (LWT, "2147483648", (None, None)),
        (LWT, "LWT_OPTIMIZATION_META_BIT_MASK=-1", (None, None)),
        (
            LWT,
            "LWT_OPTIMIZATION_META_BIT_MASK=4294967296",
            (None, None),
        ),
        (RATE, RATE_VALUE, (None, Some(0xf000))),
        (RATE, "ERROR_CODE=-1", (None, Some(-1))),
        (RATE, "61440", (None, None)),
        (RATE, "ERROR_CODE=", (None, None)),
        (RATE, "ERROR_CODE=2147483648", (None, None)),
    ] {
        let found = offer(&[(key, &["OTHER=1", value])]);
        assert_eq!(
            (found.lwt_mask, found.rate_limit_error),
            expected,
            "{value}"
        );
    }
    let named = offer(&[("SCYLLA_SHARD_AWARE_PORT", &["PORT=19042"])]);
    assert_eq!(named.ports.plain, None);
}

#[test]
fn the_second_tablets_extension_has_its_experimental_name() {
    for (key, expected) in [
        (V2, TabletsRouting::V2),
        ("TABLETS_ROUTING_V2", TabletsRouting::Off),
        (
            "SCYLLA_TABLETS_ROUTING_V2_EXPERIMENTAL",
            TabletsRouting::Off,
        ),
        ("tablets_routing_v2_experimental", TabletsRouting::Off),
        (V1, TabletsRouting::V1),
    ] {
        assert_eq!(offer(&[(key, &[""])]).tablets(), expected, "{key}");
    }
}

/// Not every extension begins with SCYLLA, and a node is known by any of those that only it has.
#[test]
fn extensions_are_found_by_name_and_not_by_prefix() {
    for (key, is_scylla) in [
        (V1, true),
        (V2, true),
        (METADATA_ID, true),
        ("SCYLLA_SHARD", true),
        ("SCYLLA_UNHEARD_OF", true),
        ("CLIENT_OPTIONS", false),
        ("PROTOCOL_VERSIONS", false),
        ("COMPRESSION", false),
    ] {
        assert_eq!(offer(&[(key, &[""])]).is_scylla, is_scylla, "{key}");
    }
}

/// Every set of extensions that a node may offer, with every limit of ours: STARTUP names what both
/// know, one tablets extension at most, and nothing that only servers say.
#[test]
fn startup_names_what_was_offered_and_no_more() {
    let all: [(&str, &[&str]); 5] = [
        (LWT, &[LWT_VALUE]),
        (RATE, &[RATE_VALUE]),
        (METADATA_ID, &[""]),
        (V1, &[""]),
        (V2, &[""]),
    ];
    for set in 0..32_u32 {
        for tablets_max in [TabletsRouting::Off, TabletsRouting::V1, TabletsRouting::V2] {
            let mut offered = vec![
                ("CLIENT_OPTIONS", &[""][..]),
                ("SCYLLA_HOST_ID", &["01020304-0506-0708-090a-0b0c0d0e0f10"]),
                ("SCYLLA_UNHEARD_OF", &[""]),
            ];
            let chosen = (0..5).filter(|place| set >> place & 1 == 1);
            offered.extend(chosen.map(|place| all[place]));
            let has = |key: &str| offered.iter().any(|(name, _)| *name == key);
            let mut expected: BTreeSet<&str> = [LWT, RATE, METADATA_ID]
                .into_iter()
                .filter(|key| has(key))
                .collect();
            let tablets = match tablets_max {
                TabletsRouting::V2 if has(V2) => Some(V2),
                TabletsRouting::V1 | TabletsRouting::V2 if has(V1) => Some(V1),
                _ => None,
            };
            expected.extend(tablets);
            expected.insert("CQL_VERSION");
            let mut config = config();
            config.tablets_max = tablets_max;
            let (startup, agreed) = negotiate(config, &multimap(&offered));
            let named: BTreeSet<&str> = startup.keys().map(String::as_str).collect();
            assert_eq!(named, expected, "{offered:?} {tablets_max:?}");
            let agreed_tablets = match tablets {
                Some(V2) => TabletsRouting::V2,
                Some(_) => TabletsRouting::V1,
                None => TabletsRouting::Off,
            };
            assert_eq!(agreed.tablets, agreed_tablets);
            assert_eq!(agreed.metadata_id, has(METADATA_ID));
            assert_eq!(agreed.dialect().rate_limit_error.is_some(), has(RATE));
        }
    }
}

/// What a client tells about itself goes along, whatever the node offers.
#[test]
fn client_options_go_into_startup_as_they_are() {
    let mut config = config();
    let id = "0b0c0d0e-0f10-4112-9314-151617181920";
    config.startup_options = vec![("DRIVER_NAME", "messina".into()), ("SESSION_ID", id.into())];
    for entries in [&[][..], &[("CLIENT_OPTIONS", &[""][..])]] {
        let (startup, _) = negotiate(config.clone(), &multimap(entries));
        assert_eq!(startup["DRIVER_NAME"], "messina");
        assert_eq!(startup["SESSION_ID"], id);
    }
}

/// The long text of the configuration goes only where it is kept.
#[test]
fn the_configuration_goes_to_nodes_that_keep_it() {
    let mut config = config();
    config.driver_config = Some(Shared::from("{\"a\":1}"));
    for (entries, told) in [
        (&[][..], None),
        (&[("CLIENT_OPTIONS", &[""][..])], Some("{\"a\":1}")),
    ] {
        let (startup, _) = negotiate(config.clone(), &multimap(entries));
        assert_eq!(startup.get("DRIVER_CONFIG").map(|text| &**text), told);
    }
}

/// The nodes of one cluster may differ during an upgrade, even the connections of one node.
#[test]
fn each_connection_agrees_by_itself() {
    let new = by_name("supported, 12 shards, on shard 3").bytes();
    let old = by_name("supported, shard 4 of 4").bytes();
    let (_, first) = negotiate(config(), &new);
    let (_, second) = negotiate(config(), &old);
    let newest = multimap(&[(V1, &[""]), (V2, &[""])]);
    let (_, newest) = negotiate(config(), &newest);
    assert_eq!(newest.tablets, TabletsRouting::V2);
    let (_, third) = negotiate(config(), &new);
    assert_eq!(first, third);
    assert_eq!(first.tablets, TabletsRouting::V1);
    assert_eq!(second.tablets, TabletsRouting::Off);
    assert_eq!((first.metadata_id, second.metadata_id), (true, false));
    assert_eq!(first.dialect().rate_limit_error, Some(0xf000));
    assert_eq!(second.dialect().rate_limit_error, None);
}

#[test]
fn a_connection_is_on_the_shard_that_supported_names() {
    let map = |shard, count, msb| Sharding {
        shard: ShardIdx::new(shard),
        map: ShardMap::new(count, msb).unwrap(),
    };
    let body = by_name("supported, 12 shards, on shard 3").bytes();
    let (_, agreed) = negotiate(config(), &body);
    assert_eq!(agreed.offer.sharding, Some(map(3, 12, 12)));
    assert_eq!(agreed.shard(), Some(ShardIdx::new(3)));
    let partitioner = "org.apache.cassandra.dht.Murmur3Partitioner";
    let table = [
        (
            "0",
            "1",
            "12",
            partitioner,
            ROUND_ROBIN,
            Some(map(0, 1, 12)),
        ),
        ("7", "8", "0", partitioner, ROUND_ROBIN, Some(map(7, 8, 0))),
        // The example of the document has another package.
        (
            "7",
            "8",
            "0",
            OTHER_PACKAGE,
            ROUND_ROBIN,
            Some(map(7, 8, 0)),
        ),
        // All shard numbers are smaller than the number of shards.
        ("8", "8", "0", partitioner, ROUND_ROBIN, None),
        ("0", "0", "0", partitioner, ROUND_ROBIN, None),
        ("-1", "8", "0", partitioner, ROUND_ROBIN, None),
        ("0", "8", "64", partitioner, ROUND_ROBIN, None),
        ("0", "0x8", "0", partitioner, ROUND_ROBIN, None),
        (
            "0",
            "8",
            "0",
            "org.apache.cassandra.dht.RandomPartitioner",
            ROUND_ROBIN,
            None,
        ),
        ("0", "8", "0", partitioner, "another", None),
    ];
    for (shard, count, msb, partitioner, algorithm, expected) in table {
        let found = offer(&[
            ("SCYLLA_SHARD", &[shard]),
            ("SCYLLA_NR_SHARDS", &[count]),
            ("SCYLLA_PARTITIONER", &[partitioner]),
            ("SCYLLA_SHARDING_ALGORITHM", &[algorithm]),
            ("SCYLLA_SHARDING_IGNORE_MSB", &[msb]),
        ]);
        assert_eq!(found.sharding, expected, "{shard} of {count}");
        assert_eq!(found.sharding_invalid, expected.is_none());
    }
}

const ROUND_ROBIN: &str = "biased-token-round-robin";
const OTHER_PACKAGE: &str = "org.apache.cassandra.partitioners.Murmur3Partitioner";

#[test]
fn shard_aware_ports_may_be_there_or_not() {
    let (plain, tls) = ("SCYLLA_SHARD_AWARE_PORT", "SCYLLA_SHARD_AWARE_PORT_SSL");
    let ports = |entries: &[(&str, &[&str])]| {
        let ports = offer(entries).ports;
        (ports.plain.map(u16::from), ports.tls.map(u16::from))
    };
    assert_eq!(ports(&[]), (None, None));
    assert_eq!(ports(&[(plain, &["19042"])]), (Some(19042), None));
    assert_eq!(ports(&[(tls, &["19142"])]), (None, Some(19142)));
    for bad in ["0", "65536", "-1", "", "x"] {
        assert_eq!(
            ports(&[(plain, &[bad]), (tls, &[bad])]),
            (None, None),
            "{bad}"
        );
    }
}

#[test]
fn the_host_is_known_before_any_table_is_read() {
    let offer = offer_of(&by_name("supported, 12 shards, on shard 3").bytes());
    let id = offer.host_id.map(|id| id.into_bytes());
    assert_eq!(
        id,
        Some(core::array::from_fn(|at| u8::try_from(at + 1).unwrap()))
    );
}
