//! What an earlier session has saved: bytes from a file, which anybody may have touched.

use std::sync::Arc;

use messina_core::cluster::{Engine, Output, WarmStart};
use messina_core::config::Config;
use messina_core::target::{Security, SteeringKind};
use messina_core::time::Instant;

use super::Target;

pub(super) const WARM_START: Target = Target {
    name: "warm_start",
    body,
    corpus: || vec![whole()],
};

/// Begins with these bytes behind a right checksum, and as they are.
fn body(bytes: &[u8]) {
    begin(bytes.to_vec());
    begin(framed(bytes));
}

/// What is begun with keeps the bounds of the session, and only connects at first.
fn begin(blob: Vec<u8>) -> usize {
    let mut config = Config::mcu();
    config.limits.connecting = 4;
    config
        .add_contact_points("10.0.0.1")
        .expect("a contact point");
    let (nodes_max, connecting) = (usize::from(config.limits.nodes), config.limits.connecting);
    let mut engine = Engine::with_warm_start(
        Arc::new(config),
        SteeringKind::ExactPort,
        Security::Plain,
        1,
        Instant::from_micros(1),
        Some(WarmStart::new(blob)),
    );
    let nodes = engine.view().topology().len();
    assert!(nodes <= nodes_max, "{nodes} nodes");
    let mut connects = 0;
    while let Some(output) = engine.poll() {
        match output {
            Output::Connect { .. } => connects += 1,
            Output::Publish(_) | Output::Assign(_) | Output::Warning(_) => {}
            other => panic!("{other:?} before anything is connected"),
        }
    }
    assert!((1..=connecting).contains(&connects), "{connects} connects");
    for statement in engine.take_statements() {
        let markers = statement.markers().len();
        let within = |index: &u16| usize::from(*index) < markers;
        assert!(statement.key_indexes().iter().all(within));
    }
    nodes
}

/// The documented frame: magic, version 1, length, body, and FNV-1a over all of it.
fn framed(body: &[u8]) -> Vec<u8> {
    let mut blob = b"MSNW\0\x01".to_vec();
    let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
    blob.extend(len.to_be_bytes());
    blob.extend(body);
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in &blob {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    }
    blob.extend(hash.to_be_bytes());
    blob
}

/// A body with one of everything, written by hand from the documented form.
fn whole() -> Vec<u8> {
    let parts: [&[u8]; 24] = [
        // Protocol 4, no hashes of contact points, no keyspace of the session.
        &[4, 0, 0],
        b"\0\x01c\0\x01p\0\x01v",
        &9042_u16.to_be_bytes(),
        // A node: host id, address and port, the addresses of its row and of events.
        &[1],
        &[7; 16],
        b"\0\x04\x0a\0\0\x01\x23\x52",
        b"\x04\x0a\0\0\x01\0",
        b"\0\x03dc1\0\x02r1",
        // Four shards, twelve ignored bits, port 19042 and none for TLS, all features, one token.
        b"\0\x04\x0c\x4a\x62\0\0\x01\x3f",
        b"\0\0\0\x08\0\0\0\0\0\0\0\x05",
        &[0],
        // A keyspace: three replicas in dc1, tablets, eventual; a table by Murmur3.
        b"\x01\0\x02ks\x01\x01\0\x03dc1\0\x03\0\x01\0",
        b"\x01\0\x01t",
        &[9; 16],
        b"\x01\0",
        &[0],
        // A statement: its text, id, no mark, a marker `ks.t.pk bigint`, which is the key.
        b"\x01\0\0\0\x08SELECT 1\0\x01i\0",
        b"\x02\0\x02ks\0\x01t\0\x02pk\x02\0",
        b"\x01\0\0\0",
        // No metadata id, and a vector of three floats for the result.
        b"\0\x02\0\x02ks\0\x01t\0\x01v\x40\0\0\0\x03\x08\0",
        &[0],
        // Of the first table of the first keyspace a tablet with a version and one replica.
        b"\x01\0\0\0\0\x01\x80\0\0\0\0\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff",
        b"\x01\0\0\0\0\0\0\0\x2a\x01\0\0\0\x03",
        &[0, 0],
    ];
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_form_is_read() {
        assert_eq!(begin(framed(&whole())), 1);
        assert_eq!(begin(whole()), 0);
    }
}
