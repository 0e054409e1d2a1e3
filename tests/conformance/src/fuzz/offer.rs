//! SUPPORTED, and what is understood of it.

use messina_core::conn::extensions::{Offer, TabletsRouting};
use messina_core::routing::Token;
use messina_core::wire::response::Supported;
use messina_core::wire::{Opcode, Reader};

use super::Target;
use crate::golden::RESPONSES;

pub(super) const OFFER: Target = Target {
    name: "offer",
    body,
    corpus,
};

fn body(bytes: &[u8]) {
    let Ok(supported) = Supported::parse(&mut Reader::new(bytes)) else {
        return;
    };
    let offer = Offer::parse(&supported);
    let names = [
        "SCYLLA_SHARD",
        "SCYLLA_NR_SHARDS",
        "SCYLLA_PARTITIONER",
        "SCYLLA_SHARDING_ALGORITHM",
        "SCYLLA_SHARDING_IGNORE_MSB",
    ];
    let said = names.map(|name| supported.first(name));
    match offer.sharding {
        Some(sharding) => {
            assert!(!offer.sharding_invalid);
            assert!(said.iter().all(Option::is_some), "sharding out of nothing");
            let count = sharding.map.count().get();
            assert!(sharding.shard.value() < count);
            assert!(sharding.map.ignore_msb() < 64);
            for token in [i64::MIN, -1, 0, 1, i64::MAX] {
                assert!(sharding.map.shard_of(Token::new(token)).value() < count);
            }
            let number = |text: Option<&str>| text.and_then(|text| text.parse::<u16>().ok());
            let [shard, shards, ..] = said;
            assert_eq!(number(shard), Some(sharding.shard.value()));
            assert_eq!(number(shards), Some(count));
        }
        None => assert_eq!(offer.sharding_invalid, said.iter().any(Option::is_some)),
    }
    assert_eq!(
        offer.metadata_id,
        supported.contains("SCYLLA_USE_METADATA_ID")
    );
    match offer.tablets() {
        TabletsRouting::V2 => assert!(supported.contains("TABLETS_ROUTING_V2_EXPERIMENTAL")),
        TabletsRouting::V1 => assert!(supported.contains("TABLETS_ROUTING_V1")),
        _ => assert!(!offer.tablets_v1 && !offer.tablets_v2),
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let mut corpus: Vec<Vec<u8>> = RESPONSES
        .iter()
        .filter(|golden| golden.opcode == Opcode::Supported)
        .map(crate::golden::Golden::bytes)
        .collect();
    // Short, so that a change meets a number more often.
    corpus.push(supported(&[
        ("SCYLLA_SHARD", "3"),
        ("SCYLLA_NR_SHARDS", "12"),
        ("SCYLLA_PARTITIONER", "Murmur3Partitioner"),
        ("SCYLLA_SHARDING_ALGORITHM", "biased-token-round-robin"),
        ("SCYLLA_SHARDING_IGNORE_MSB", "12"),
        ("TABLETS_ROUTING_V2_EXPERIMENTAL", ""),
    ]));
    corpus
}

/// A SUPPORTED body: a string multimap with one value for each name.
pub(super) fn supported(options: &[(&str, &str)]) -> Vec<u8> {
    let short = |len: usize| u16::try_from(len).expect("short").to_be_bytes();
    let mut body = short(options.len()).to_vec();
    for (name, value) in options {
        body.extend(short(name.len()));
        body.extend(name.as_bytes());
        body.extend([0, 1]);
        body.extend(short(value.len()));
        body.extend(value.as_bytes());
    }
    body
}
